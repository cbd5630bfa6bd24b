import { afterAll, onTestFinished } from 'vitest';

/** Stops a resource after the tests of the file. The resource that was passed last stops first. Returns the resource. */
export function stopAfterAll<T extends { stop(): unknown } | { close(): unknown }>(started: T): T {
  afterAll(() => ('stop' in started ? started.stop() : started.close()));
  return started;
}

/** Stops a resource after the current test. Returns the resource. */
export function stopAfterTest<T extends { stop(): unknown }>(started: T): T {
  onTestFinished(async () => {
    await started.stop();
  });
  return started;
}
