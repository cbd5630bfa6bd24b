import { afterAll } from 'vitest';

/** Hands on what was started, which is stopped once the tests of the file have run, last started first. */
export function stopAfterAll<T extends { stop(): unknown }>(started: T): T {
  afterAll(() => started.stop());
  return started;
}
