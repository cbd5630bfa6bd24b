import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { endProcess, killOnExit, waitUntil } from '../../dev/system/processes';
import { BUILD_FOLDER, withoutServiceVariables } from './build';

const project = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Variables that are set to the empty string. The local stack (see `LocalStack`) treats them as not set and ignores their
 * values in `.env.local`.
 */
const emptyVariables = Object.fromEntries(
  [
    ...['DATABASE_URL', 'KV_REST_API_URL', 'KV_REST_API_TOKEN', 'REDIS_URL', 'PORT'],
    ...['IDP_SECRET_KEY', 'IDP_PUBLISHABLE_KEY', 'IDP_WEBHOOK_SIGNING_SECRET', 'IDP_AUTHORIZED_PARTIES'],
    ...['IDP_KEY_STYLE', 'IDP_RETRY_SCALE'],
  ].map((name) => [name, '']),
);

const Details = z
  .object({ app: z.string(), environment: z.record(z.string(), z.string()) })
  .transform(({ app, environment: { DATABASE_URL, KV_REST_API_URL, CLERK_API_URL, IDP_CONSOLE_URL } }) => ({
    app,
    databaseUrl: DATABASE_URL ?? '',
    kv: { url: KV_REST_API_URL ?? '' },
    identityProvider: { url: CLERK_API_URL ?? '', consoleUrl: IDP_CONSOLE_URL ?? '' },
  }));

/** Addresses of a running stack. */
export type Details = z.infer<typeof Details>;

type Variables = Readonly<Record<string, string>>;

/**
 * A local stack: the service and its dependencies on this machine, as `npm run dev` or `npm run preview` starts them. It stores
 * its files in a temporary folder and ignores the service's variables in the environment of the tests.
 */
export interface LocalStack {
  readonly folder: string;
  /** Runs a command of the project in the environment of the stack. The command is killed when this process ends. */
  run(command: string, args: readonly string[], more?: Variables): Run;
  /** Runs the same program as `npm run dev` or `npm run preview`, with these arguments. */
  launch(mode: 'dev' | 'preview', more?: Variables, args?: readonly string[]): Run;
  /** Launches the stack and resolves when it is ready. If the stack exits or is not ready in time, rejects with its stderr. */
  start(...options: Parameters<LocalStack['launch']>): Promise<Run & { printed: string; details: Details }>;
  /** Returns the ids of all processes whose environment contains the folder of this stack. Works on Linux only. */
  processes(): string[];
  /** Stops the commands that still run, waits until all processes of the stack have ended, and removes the folder. */
  remove(): Promise<void>;
}

interface Run {
  readonly child: ChildProcess;
  readonly written: { readonly stdout: string; readonly stderr: string };
  /** Resolves with the exit code, or the signal that ended the process. */
  readonly exited: Promise<unknown>;
}

export function createLocalStack(): LocalStack {
  const folder = path.join(mkdtempSync(path.join(os.tmpdir(), 'identity-link-tests-stack-')), 'local');
  const children: ChildProcess[] = [];

  /** Starts a command in its own process group, as a terminal does, so that the whole group can get a Ctrl-C. */
  const run = (command: string, args: readonly string[], more: Variables = {}): Run => {
    const child = spawn(command, args, {
      cwd: project,
      env: {
        ...withoutServiceVariables(),
        ...emptyVariables,
        LOCAL_FOLDER: folder,
        NEXT_DIST_DIR: BUILD_FOLDER,
        ...more,
      },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    children.push(child);
    if (child.pid !== undefined) child.once('exit', killOnExit(-child.pid, 'SIGTERM'));
    const written = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (chunk) => {
        written[name] += chunk;
      });
    }
    return { child, written, exited: once(child, 'close').then(([code, signal]) => code ?? signal) };
  };

  const launch: LocalStack['launch'] = (mode, more, args = []) =>
    run(process.execPath, ['--import', 'tsx', 'dev/stack/main.ts', mode, ...args], more);

  const processes = () => {
    if (!existsSync('/proc/self/environ')) return [];
    return readdirSync('/proc').filter((name) => {
      try {
        return (
          /^\d+$/.test(name) &&
          readFileSync(`/proc/${name}/environ`, 'utf8').includes(`LOCAL_FOLDER=${folder}`)
        );
      } catch {
        return false;
      }
    });
  };

  return {
    folder,
    run,
    launch,
    async start(mode, ...options) {
      const stack = launch(mode, ...options);
      const { child, written } = stack;
      const up = () => written.stdout.includes('Ctrl-C stops everything');
      const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
      await waitUntil(() => up() || hasEnded(), mode === 'dev' ? 120_000 : 300_000);
      if (!up()) throw new Error(`The stack did not start:\n${written.stderr}`);
      const file = readFileSync(path.join(folder, 'stack.json'), 'utf8');
      const { details } = z.object({ details: Details }).parse(JSON.parse(file));
      return { ...stack, printed: written.stdout, details };
    },
    processes,
    async remove() {
      const running = children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
      await Promise.all(
        running.map(({ pid }) => pid && endProcess(-pid, [{ signal: 'SIGTERM', milliseconds: 40_000 }])),
      );
      await waitUntil(() => processes().length === 0, 20_000);
      rmSync(path.dirname(folder), { recursive: true, force: true });
    },
  };
}
