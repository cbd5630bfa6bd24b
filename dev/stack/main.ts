import { messageOf } from '../system/errors';
import { type Dependency, startDatabase, startIdpEmulator, startKv } from './dependencies';
import { choosePort, NEXT, type NextProcess, startProgram, waitUntilReady } from './next';
import { updateRoutes } from './routes';
import { loadEnvironmentFiles, readSettings, type Settings } from './settings';
import { claimFolder } from './stack-file';

/** Option of Next.js. With this option, Node.js 22.18 and later load next.config.ts without a compiler. */
const STRIP_TYPES = '--experimental-next-config-strip-types';

type Mode = 'dev' | 'preview';

/** Stops one component. */
type Stop = () => Promise<void>;

/** Time limit of the whole shutdown. It exceeds the shutdown timeout of each component. */
const stopTimeoutMilliseconds = 40_000;

/**
 * Runs the service with its dependencies. Starts an embedded server for each dependency that the environment does not
 * configure. Appends a stop function to `stops` for each started component. Never resolves. Rejects if a component does not
 * start, the build fails, Next.js exits or the signal is aborted.
 */
async function runStack(mode: Mode, settings: Settings, stops: Stop[], signal: AbortSignal): Promise<never> {
  const startedAt = performance.now();
  const claim = await claimFolder(settings.LOCAL_FOLDER);
  stops.push(() => claim.release());
  const port = await choosePort(settings.PORT);
  const app = `http://localhost:${port}`;
  const start = async (dependency: Promise<Dependency>) => {
    const started = await dependency;
    stops.push(() => started.stop());
    signal.throwIfAborted();
    return started;
  };
  const database = await start(startDatabase(settings, signal));
  const kv = await start(startKv(settings));
  const identityProvider = await start(startIdpEmulator(settings, app));
  const dependencyVariables = { ...database.environment, ...kv.environment, ...identityProvider.environment };
  const environment = {
    ...dependencyVariables,
    NODE_ENV: mode === 'dev' ? 'development' : 'production',
    NEXT_TELEMETRY_DISABLED: '1',
  };
  const run = (...args: string[]): NextProcess => {
    const program = startProgram(args, environment);
    stops.push(() => program.stop());
    return program;
  };

  if (mode === 'preview') {
    for (const step of [[NEXT, 'build', STRIP_TYPES], ['commands/build-server.mjs']]) {
      const status = await Promise.race([run(...step).exited, rejectOnAbort(signal)]);
      if (status !== 0) throw new Error(`The build failed with exit code ${status}.`);
    }
  }
  const next = run(
    ...(mode === 'dev'
      ? [NEXT, 'dev', STRIP_TYPES]
      : [`${process.env['NEXT_DIST_DIR'] ?? '.next'}/server.mjs`]),
    ...['-H', 'localhost', '-p', String(port)],
  );
  if (mode === 'dev') {
    const stopUpdates = updateRoutes();
    stops.push(async () => stopUpdates());
  }
  const first = await Promise.race([next.exited, waitUntilReady(app, signal)]);
  if (typeof first === 'number') throw nextExitedError(first);
  if (!first) throw new Error(`The application does not respond at ${app}.`);
  claim.publish({
    app,
    ...database.details,
    ...kv.details,
    ...identityProvider.details,
    environment: dependencyVariables,
  });
  const { consoleUrl } = identityProvider.details.identityProvider ?? {};
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
  if (identityProvider.details.identityProvider) console.log(exampleCommands);
  console.log('\nCtrl-C stops everything.\n');
  throw nextExitedError(await Promise.race([next.exited, rejectOnAbort(signal)]));
}

function nextExitedError(exitCode: number): Error {
  return new Error(`Next.js exited unexpectedly with code ${exitCode}.`);
}

const exampleCommands = `
To create a user, print a session token and use it, run these commands in another terminal:

  npm run -s local create-user
  npm run -s local token
  npm run -s local me "$(npm run -s local token)"`;

/** Never resolves. Rejects when the signal is aborted. */
function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.throwIfAborted();
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

/**
 * Stops all components. The component that was started last is stopped first. If a component fails to stop, the function prints
 * the error and stops the next one.
 */
async function stopAll(stops: Stop[]): Promise<void> {
  // If the components do not stop in time, this process ends. The watchdog process (dev/system/processes.ts) then terminates
  // the components that are still running.
  setTimeout(() => process.exit(1), stopTimeoutMilliseconds).unref();
  for (const stop of stops.reverse()) {
    await stop().catch((error: unknown) => console.error('Shutdown error:', messageOf(error)));
  }
}

async function main(): Promise<void> {
  const mode = process.argv[2];
  if (mode !== 'dev' && mode !== 'preview') throw new Error('Usage: main.ts dev|preview');
  loadEnvironmentFiles(mode);
  const interruption = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    // npm runs this program in a shell and forwards SIGINT and SIGTERM to the process of the shell. Some shells replace their
    // process with this program (exec). One Ctrl-C then arrives as two signals, one from the terminal and one from npm. A
    // second signal may therefore belong to the first Ctrl-C. A third signal cannot, and ends this process immediately.
    let count = 0;
    process.on(signal, () => {
      interruption.abort(new Error('interrupted'));
      count += 1;
      if (count === 3) process.exit(130);
    });
  }
  // If the shell does not replace its process, the shell is the parent of this process, and a SIGTERM from npm may end only the
  // shell. A new parent process id means that the parent has ended, so this process stops too.
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) interruption.abort(new Error('interrupted'));
  }, 1_000).unref();
  const stops: Stop[] = [];
  try {
    await runStack(mode, readSettings(process.env), stops, interruption.signal);
  } catch (error) {
    if (!interruption.signal.aborted) throw error;
  } finally {
    await stopAll(stops);
  }
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(messageOf(error));
    process.exit(1);
  },
);
