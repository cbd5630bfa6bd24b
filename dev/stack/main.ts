import { messageOf } from '../system/errors';
import { answers, choosePort, NEXT, type NextProcess, startProgram } from './next';
import { type Part, startDatabase, startKv, startStandIn } from './parts';
import { loadEnvironmentFiles, readSettings, type Settings } from './settings';
import { claimFolder } from './stack-file';

type Mode = 'dev' | 'preview';

/** Ends one thing that was started; they run in reverse. */
type Stop = () => Promise<void>;

/** More than the slowest part takes by its own bounds. */
const stopMilliseconds = 40_000;

/**
 * Runs the whole service on this machine; what the environment does not name is embedded. Never resolves; rejects when
 * a part does not start, Next ends by itself, or the signal is aborted. Everything started is in `stops`.
 */
async function runStack(mode: Mode, settings: Settings, stops: Stop[], signal: AbortSignal): Promise<never> {
  const begin = performance.now();
  const claim = await claimFolder(settings.LOCAL_FOLDER);
  stops.push(() => claim.release());
  const port = await choosePort(settings.PORT);
  const app = `http://localhost:${port}`;
  const start = async (part: Promise<Part>) => {
    const started = await part;
    stops.push(() => started.stop());
    signal.throwIfAborted();
    return started;
  };
  const database = await start(startDatabase(settings, signal));
  const kv = await start(startKv(settings));
  const identityProvider = await start(startStandIn(settings, app));
  const ofParts = { ...database.environment, ...kv.environment, ...identityProvider.environment };
  const environment = {
    ...ofParts,
    NODE_ENV: mode === 'dev' ? 'development' : 'production',
    NEXT_TELEMETRY_DISABLED: '1',
  };
  const run = (...args: string[]): NextProcess => {
    const program = startProgram(args, environment);
    stops.push(() => program.stop());
    return program;
  };

  if (mode === 'preview') {
    for (const step of [[NEXT, 'build'], ['commands/build-server.mjs']]) {
      const status = await Promise.race([run(...step).exited, abortion(signal)]);
      if (status !== 0) throw new Error(`The build failed, with exit code ${status}.`);
    }
  }
  const next = run(
    ...(mode === 'dev' ? [NEXT, 'dev'] : ['.next/server.mjs']),
    ...['-H', 'localhost', '-p', String(port)],
  );
  const first = await Promise.race([next.exited, answers(app, signal)]);
  if (typeof first === 'number') throw endedByItself(first);
  if (!first) throw new Error(`The application does not answer at ${app}.`);
  claim.publish({
    app,
    ...database.details,
    ...kv.details,
    ...identityProvider.details,
    environment: ofParts,
  });
  const { consoleUrl } = identityProvider.details.identityProvider ?? {};
  const lines = [
    ['Application', app],
    ['Identity provider', identityProvider.line],
    ...(consoleUrl === undefined ? [] : [['Its console', consoleUrl]]),
    ['PostgreSQL', database.line],
    ['KV', kv.line],
  ];
  if (database.warning !== undefined) console.warn(`\n${database.warning}`);
  console.log(`\nUp in ${((performance.now() - begin) / 1000).toFixed(1)} s.\n`);
  for (const [name = '', line] of lines) console.log(`  ${name.padEnd(18)}${line}`);
  if (identityProvider.details.identityProvider) console.log(commands);
  console.log('\nCtrl-C stops everything.\n');
  throw endedByItself(await Promise.race([next.exited, abortion(signal)]));
}

function endedByItself(exitCode: number): Error {
  return new Error(`Next.js ended by itself, with exit code ${exitCode}.`);
}

const commands = `
In another terminal of this folder, create a user, print a session token, and use one:

  npm run -s local create-user
  npm run -s local token
  npm run -s local me "$(npm run -s local token)"`;

/** Never resolves; rejects once the signal is aborted. */
function abortion(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.throwIfAborted();
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

/** Ends everything, last started first. One that cannot be ended does not keep the others. */
async function stopAll(stops: Stop[]): Promise<void> {
  // Whatever is left after this time is ended by the process that watches over this one.
  setTimeout(() => process.exit(1), stopMilliseconds).unref();
  for (const stop of stops.reverse()) {
    await stop().catch((error: unknown) => console.error('While stopping:', messageOf(error)));
  }
}

async function main(): Promise<void> {
  const mode = process.argv[2];
  if (mode !== 'dev' && mode !== 'preview') throw new Error('Usage: main.ts dev|preview');
  loadEnvironmentFiles(mode);
  const interruption = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    // `npm` and the terminal may both send it; the third one is impatience.
    let count = 0;
    process.on(signal, () => {
      interruption.abort(new Error('interrupted'));
      count += 1;
      if (count === 3) process.exit(130);
    });
  }
  // `npm` passes no SIGTERM on: without it, nobody is left who would stop this process.
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
