import getPort, { portNumbers } from 'get-port';
import { NEXT_PROGRAM } from '#lib/next/program';
import { responds, type StartedProcess, startProcess } from '../system/start-process';
import { type Dependency, startDatabase, startIdpEmulator, startKv } from './dependencies';
import { projectFolder, type Settings } from './settings';
import { claimFolder } from './stack-file';

const FIRST_PORT = 3000;

/** Option of Next.js. With this option, Node.js 22.18 and later load next.config.ts without a compiler. */
const STRIP_TYPES = '--experimental-next-config-strip-types';

const EXAMPLE_COMMANDS = `
To create a user, print a session token and use it, run these commands in another terminal:

  npm run -s local create-user
  npm run -s local token
  npm run -s local me "$(npm run -s local token)"
`;

export interface StackOptions {
  readonly mode: 'dev' | 'preview';
  /** Further arguments for Next.js. */
  readonly args: readonly string[];
  readonly settings: Settings;
  /** `runStack` appends a stop function for each started component. */
  readonly stops: (() => unknown)[];
  readonly signal: AbortSignal;
}

/** Runs the service with its dependencies. Rejects if a part does not start, Next.js exits or the signal is aborted. */
export async function runStack({ mode, args, settings, stops, signal }: StackOptions): Promise<never> {
  const startedAt = performance.now();
  const claim = claimFolder(settings.LOCAL_FOLDER);
  stops.push(claim.release);
  const port = await choosePort(settings.PORT);
  const app = `http://localhost:${port}`;
  const start = async (dependency: Promise<Dependency>) => {
    const started = await dependency;
    stops.push(started.stop);
    signal.throwIfAborted();
    return started;
  };
  const database = await start(startDatabase(settings));
  const kv = await start(startKv(settings));
  const identityProvider = await start(startIdpEmulator(settings, app));
  const environment: Record<string, string> = {
    PUBLIC_ORIGIN: app,
    ...database.environment,
    ...kv.environment,
    ...identityProvider.environment,
  };
  const run = (...command: readonly string[]): StartedProcess => {
    const program = startProcess(process.execPath, command, {
      cwd: projectFolder,
      env: { ...process.env, ...environment, NEXT_TELEMETRY_DISABLED: '1' },
      output: 'inherit',
      // Without the signal of Ctrl-C, Next.js runs until this process stops it, before the servers that Next.js uses.
      group: true,
    });
    stops.push(program.stop);
    return program;
  };

  if (mode === 'preview') {
    for (const step of [[NEXT_PROGRAM, 'build', STRIP_TYPES], ['commands/build-server.mjs']]) {
      const status = await Promise.race([run(...step).exited, rejectOnAbort(signal)]);
      if (status !== 0) throw new Error(`The build failed with exit code ${status}.`);
    }
  }
  const program =
    mode === 'dev'
      ? [NEXT_PROGRAM, 'dev', STRIP_TYPES]
      : [`${process.env['NEXT_DIST_DIR'] ?? '.next'}/server.mjs`];
  const next = run(...program, '-H', 'localhost', ...args, '-p', String(port));
  // Requests an API route, because Next.js compiles a route on its first request, and a page takes longer to compile.
  const isUp = next.ready(() => responds(`${app}/health/alive`), 120_000);
  await Promise.race([isUp, rejectOnAbort(signal)]);
  claim.publish({ app, environment });
  const consoleUrl = environment['IDP_CONSOLE_URL'];
  const lines = [
    ['Application', app],
    ['Identity provider', identityProvider.line],
    ...(consoleUrl === undefined ? [] : [['Console', consoleUrl]]),
    ['PostgreSQL', database.line],
    ['KV', kv.line],
  ];
  if (database.warning !== undefined) console.warn(`\n${database.warning}`);
  console.log(`\nUp in ${((performance.now() - startedAt) / 1000).toFixed(1)} s.\n`);
  for (const [name = '', line] of lines) console.log(`  ${name.padEnd(18)}${line}`);
  if (environment['IDP_SECRET_KEY'] !== undefined) console.log(EXAMPLE_COMMANDS);
  console.log('The lines of Next.js above need no action. Ctrl-C stops everything.\n');
  const code = await Promise.race([next.exited, rejectOnAbort(signal)]);
  throw new Error(`Next.js exited unexpectedly with code ${code}.`);
}

/** Returns the requested port, or prints and returns the first free one from 3000. Rejects if the requested one is in use. */
async function choosePort(requested: number | undefined): Promise<number> {
  const port = await getPort({ port: requested ?? portNumbers(FIRST_PORT, FIRST_PORT + 99) });
  if (requested !== undefined && port !== requested)
    throw new Error(`Port ${requested} is in use. Select another port with -p or PORT.`);
  if (requested === undefined && port !== FIRST_PORT)
    console.log(`Port ${FIRST_PORT} is in use. The application uses port ${port}.`);
  return port;
}

/** Never resolves. Rejects when the signal is aborted. */
function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.throwIfAborted();
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
