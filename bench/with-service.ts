import { build } from '../tests/harness/build';
import type { DatabaseServer } from '../tests/harness/dependencies/database';
import { startDedicatedPostgres } from '../tests/harness/dependencies/dedicated-postgres';
import { startTestService, type TestService, type TestServiceOptions } from '../tests/harness/service';

interface StartedServer extends DatabaseServer {
  stop(): Promise<void>;
}

/**
 * Builds the service, starts a database server and the service, and calls `work`. Stops the service and the database server
 * when `work` settles or the process is interrupted. Do not run tests at the same time, because tests use the same build
 * folder.
 */
export async function withServiceOver<S extends StartedServer>(
  startServer: () => Promise<S>,
  options: TestServiceOptions,
  work: (service: TestService, server: S) => Promise<void>,
): Promise<void> {
  process.stdout.write('building\n');
  await build();
  const starting = startServer();
  let service: TestService | undefined;
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= (async () => {
      await service?.stop();
      await (await starting).stop();
    })();
    return stopped;
  };
  const interrupted = () => void stop().finally(() => process.exit(130));
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
  try {
    const server = await starting;
    service = await startTestService({ ...options, server });
    process.stdout.write(`running ${service.processes.length} processes\n`);
    await work(service, server);
  } finally {
    await stop();
    process.off('SIGINT', interrupted).off('SIGTERM', interrupted);
  }
}

/** Calls `withServiceOver` with a single PostgreSQL server, without replication. */
export const withService = (
  options: TestServiceOptions,
  work: (service: TestService) => Promise<void>,
): Promise<void> => withServiceOver(startDedicatedPostgres, options, work);
