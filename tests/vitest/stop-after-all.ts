import { afterAll, onTestFinished } from 'vitest';

/** Hands on what was started, which is stopped once the tests of the file have run, last started first. */
export function stopAfterAll<T extends { stop(): unknown } | { close(): unknown }>(started: T): T {
  afterAll(() => ('stop' in started ? started.stop() : started.close()));
  return started;
}

/** The same for what a test starts. */
export function stopAfterTest<T extends { stop(): unknown }>(started: T): T {
  onTestFinished(async () => {
    await started.stop();
  });
  return started;
}
