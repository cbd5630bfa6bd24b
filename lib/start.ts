import './idp/credentials';
import { drainDatabase } from './db';
import { environment, InvalidEnvironmentError } from './env';
import { requestsDone } from './http';

// Next.js logs an error thrown at start-up and serves on, so the process has to be ended here.
try {
  environment();
} catch (error) {
  process.stderr.write(`${error instanceof InvalidEnvironmentError ? error.message : 'Start-up failed'}\n`);
  process.exit(1);
}

/** Below what platforms grant before they kill. */
const SHUTDOWN_MS = 9_000;

// On SIGTERM Next.js stops listening, answers what is under way and exits with 143, as if killed.
process.once('SIGTERM', async () => {
  process.once('exit', () => {
    process.exitCode = 0;
  });
  setTimeout(() => process.exit(), SHUTDOWN_MS).unref();
  await requestsDone();
  await drainDatabase();
});
