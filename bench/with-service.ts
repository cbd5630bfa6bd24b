import { build } from '../tests/harness/build';
import { startOwnPostgres } from '../tests/harness/parts/own-postgres';
import { startTestService, type TestService, type TestServiceOptions } from '../tests/harness/service';

/**
 * Builds the service, starts it over parts of its own and hands it to `work`; when this resolves, rejects or is
 * interrupted, all of it is stopped. The build is the tests': one of the two at a time.
 */
export async function withService(
  options: TestServiceOptions,
  work: (service: TestService) => Promise<void>,
): Promise<void> {
  process.stdout.write('building\n');
  await build();
  const starting = startOwnPostgres();
  let service: TestService | undefined;
  const stop = async () => {
    await service?.stop();
    await (await starting).stop();
  };
  const interrupted = () => void stop().finally(() => process.exit(130));
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
  try {
    service = await startTestService({ ...options, server: await starting });
    process.stdout.write(`running ${service.processes.length} processes\n`);
    await work(service);
  } finally {
    await stop();
  }
}
