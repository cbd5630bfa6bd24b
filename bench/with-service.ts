import { execFileSync } from 'node:child_process';
import { BUILD_FOLDER, BUILD_TIME_VALUES, withoutServiceVariables } from '../tests/support/build';
import { startOwnPostgres } from '../tests/support/own-postgres';
import { startTestService, type TestService, type TestServiceOptions } from '../tests/support/service';

/**
 * Builds the service, starts it over parts of its own and hands it to `work`; when this resolves, rejects or is
 * interrupted, all of it is stopped. The build is the tests': one of the two at a time.
 */
export async function withService(
  options: TestServiceOptions,
  work: (service: TestService) => Promise<void>,
): Promise<void> {
  process.stdout.write('building\n');
  execFileSync(process.execPath, ['node_modules/next/dist/bin/next', 'build'], {
    env: { ...withoutServiceVariables(), ...BUILD_TIME_VALUES, NEXT_DIST_DIR: BUILD_FOLDER },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const postgres = await startOwnPostgres();
  let service: TestService | undefined;
  const stop = async () => {
    await service?.stop();
    await postgres.stop();
  };
  const interrupted = () => void stop().finally(() => process.exit(130));
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
  try {
    service = await startTestService({ ...options, server: postgres });
    process.stdout.write(`running ${service.processes.length} processes\n`);
    await work(service);
  } finally {
    await stop();
  }
}
