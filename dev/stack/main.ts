import '../../commands/require-client';
import { accessSync, constants } from 'node:fs';
import { Command } from 'commander';
import { errorCode, messageOf } from '#lib/base/errors';
import { prepareEnvironment, projectFolder, readSettings } from './settings';

/** Time limit of the whole shutdown. It exceeds the shutdown timeout of each component. */
const STOP_TIMEOUT_MS = 40_000;

/** Stops the components, the last one first. Prints an error, and stops the next one. */
async function stopAll(stops: (() => unknown)[]): Promise<void> {
  // If the components do not stop in time, this process ends. The watchdog process (dev/system/processes.ts) then terminates
  // the components that are still running.
  setTimeout(() => process.exit(1), STOP_TIMEOUT_MS).unref();
  for (const stop of stops.reverse()) {
    try {
      await stop();
    } catch (error) {
      console.error('Shutdown error:', messageOf(error));
    }
  }
}

/** `npm run dev` and `npm run preview`. Further arguments are passed to Next.js, for example `npm run dev -- -p 4000`. */
async function main([mode, ...given]: readonly string[]): Promise<void> {
  if (mode !== 'dev' && mode !== 'preview')
    throw new Error('Usage: main.ts dev|preview [options of Next.js]');
  const program = new Command(`npm run ${mode} --`)
    .description('Starts the service, and each dependency whose variables are not set (.env.example).')
    .option('-p, --port <number>', 'port of the service; default: PORT, or the first free one from 3000')
    .argument('[options...]', 'other options, which Next.js gets')
    .allowUnknownOption()
    .parse(given, { from: 'user' });
  const { port } = program.opts<{ readonly port?: string }>();
  const { args } = program;
  try {
    accessSync(projectFolder, constants.W_OK);
  } catch {
    throw new Error(`Cannot write to ${projectFolder}, as Next.js and the stack do. Use a copy of it.`);
  }
  prepareEnvironment(mode);
  const settings = readSettings({ ...process.env, ...(port === undefined ? {} : { PORT: port }) });
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
  const stops: (() => unknown)[] = [];
  try {
    const { runStack } = await import('./run').catch((error: unknown) => {
      if (errorCode(error) !== 'ERR_MODULE_NOT_FOUND') throw error;
      throw new Error(
        `A devDependency is not installed, as after npm ci with NODE_ENV=production. Run: npm ci --include=dev (${messageOf(error)})`,
      );
    });
    await runStack({ mode, args, settings, stops, signal: interruption.signal });
  } catch (error) {
    if (!interruption.signal.aborted) throw error;
  } finally {
    await stopAll(stops);
  }
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(messageOf(error));
    process.exit(1);
  },
);
