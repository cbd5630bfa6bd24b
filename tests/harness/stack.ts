import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { waitUntil } from '../../dev/system/processes';
import type { StartedProcess } from '../../dev/system/start-process';
import { BUILD_FOLDER } from './build';
import { startProgram } from './commands';

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
 * Returns a local stack: the service and its dependencies on this machine, as `npm run dev` or `npm run preview` starts them. It
 * stores its files in a temporary folder and ignores the service's variables in the environment of the tests.
 */
export function createLocalStack() {
  const folder = path.join(mkdtempSync(path.join(os.tmpdir(), 'identity-link-tests-stack-')), 'local');
  const runs: StartedProcess[] = [];

  /** Runs a command of the project in the environment of the stack. */
  const run = (command: string, args: readonly string[], more: Variables = {}) => {
    const environment = { PORT: '', LOCAL_FOLDER: folder, NEXT_DIST_DIR: BUILD_FOLDER, ...more };
    const started = startProgram(command, args, environment, true);
    runs.push(started);
    return started;
  };

  /** Runs the same program as `npm run dev` or `npm run preview`, with these arguments. */
  const launch = (mode: 'dev' | 'preview', more?: Variables, args: readonly string[] = []) =>
    run(process.execPath, ['--import', 'tsx', 'dev/stack/main.ts', mode, ...args], more);

  /** Returns the ids of all processes whose environment contains the folder of this stack. Works on Linux only. */
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
    processes,
    /** Launches the stack and resolves when it is ready. If the stack exits or is not ready in time, rejects with its output. */
    async start(...[mode, ...options]: Parameters<typeof launch>) {
      const stack = launch(mode, ...options);
      const { written, ready } = stack;
      await ready(() => written.stdout.includes('Ctrl-C stops everything'), 300_000);
      const file = readFileSync(path.join(folder, 'stack.json'), 'utf8');
      const { details } = z.object({ details: Details }).parse(JSON.parse(file));
      return { ...stack, printed: written.stdout, details };
    },
    /** Stops the commands that still run, waits until all processes of the stack have ended, and removes the folder. */
    async remove() {
      await Promise.all(runs.map(({ stop }) => stop()));
      await waitUntil(() => processes().length === 0, 20_000);
      rmSync(path.dirname(folder), { recursive: true, force: true });
    },
  };
}
