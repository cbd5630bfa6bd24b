import { afterAll, onTestFinished } from 'vitest';

interface Stoppable {
  stop(): Promise<unknown>;
}

/** Stops a server after the last test of the file. Returns the server. */
export function stopAfterAll<T extends Stoppable>(server: T): T {
  afterAll(() => server.stop());
  return server;
}

/** Stops a server at the end of the current test. Returns the server. */
export function stopAfterTest<T extends Stoppable>(server: T): T {
  onTestFinished(async () => {
    await server.stop();
  });
  return server;
}
