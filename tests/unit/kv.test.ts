import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { BUILD_TIME_VALUES } from '../support/build';

/** The store as a test has it: how it answers from now on. */
let answer: 'value' | 'error' | 'reset' | 'nothing';

/** The network: an unanswered request ends only when its own signal does. */
const network = vi.fn<typeof fetch>(async (_address, init) => {
  // The client asks for values in base64.
  if (answer === 'value') return Response.json([{ result: btoa('stored') }]);
  if (answer === 'reset') throw new TypeError('fetch failed');
  if (answer === 'error') return new Response('internal error', { status: 500 });
  return new Promise((_resolve, reject) => {
    init?.signal?.addEventListener('abort', () => reject(init.signal?.reason));
  });
});

// The breaker is a module's own state: each test loads the module anew.
let withKv: typeof import('../../lib/kv')['withKv'];
let log: typeof import('../../lib/log')['log'];

beforeEach(async () => {
  vi.useFakeTimers();
  vi.spyOn(AbortSignal, 'timeout').mockImplementation((milliseconds) => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(new DOMException('The time is up', 'TimeoutError')), milliseconds);
    return controller.signal;
  });
  vi.stubGlobal('fetch', network.mockClear());
  for (const [name, value] of Object.entries(BUILD_TIME_VALUES)) vi.stubEnv(name, value);
  vi.resetModules();
  ({ withKv } = await import('../../lib/kv'));
  ({ log } = await import('../../lib/log'));
  vi.spyOn(log, 'warn').mockReturnValue();
  vi.spyOn(log, 'info').mockReturnValue();
  answer = 'value';
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
});

/** One call. Resolves with what came of it. */
const call = () =>
  withKv((kv) => kv.get('key')).then(
    (value) => value,
    ({ name }: Error) => name,
  );
/** Calls one after the other, each a millisecond after the one before has ended. */
async function calls(count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    await call();
    await vi.advanceTimersByTimeAsync(1);
  }
}
/** True if a call reaches the network. */
async function isCalled(): Promise<boolean> {
  const before = network.mock.calls.length;
  await call();
  return network.mock.calls.length > before;
}

test('a call to a store that never answers ends at 500 ms', async () => {
  answer = 'nothing';
  const ended = vi.fn();
  void call().then(ended);
  await vi.advanceTimersByTimeAsync(499);
  expect(ended).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(ended).toHaveBeenCalledExactlyOnceWith('KvFault');
});

test.each(['error', 'reset', 'nothing'] as const)('a call is tried once: %s', async (fault) => {
  answer = fault;
  void call();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(network).toHaveBeenCalledTimes(1);
});

describe('faults in a row', () => {
  test('four change nothing, and after the fifth the store is called no more: the fault comes at once', async () => {
    answer = 'error';
    await calls(4);
    expect(await isCalled()).toBe(true);
    expect(await isCalled()).toBe(false);
    expect(await call()).toBe('KvFault');
  });

  test('are counted anew after a success', async () => {
    answer = 'error';
    await calls(4);
    answer = 'value';
    expect(await call()).toBe('stored');
    answer = 'error';
    await calls(4);
    expect(await isCalled()).toBe(true);
    expect(await isCalled()).toBe(false);
  });

  test('of calls that were under way together count once', async () => {
    answer = 'nothing';
    for (let index = 0; index < 20; index += 1) {
      void call();
      await vi.advanceTimersByTimeAsync(1);
    }
    await vi.advanceTimersByTimeAsync(500);
    expect(network).toHaveBeenCalledTimes(20);
    answer = 'error';
    await calls(3);
    expect(await isCalled(), 'the fifth').toBe(true);
    expect(await isCalled()).toBe(false);
  });
});

describe('after the store was given up', () => {
  beforeEach(async () => {
    answer = 'error';
    await calls(5);
    network.mockClear();
  });

  test('one probe a second asks for it, and only while there are calls; none of them waits for the probe', async () => {
    answer = 'nothing';
    await vi.advanceTimersByTimeAsync(990);
    await call();
    expect(network).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(network).not.toHaveBeenCalled();
    expect(await Promise.all([call(), call(), call()])).toEqual(Array(3).fill('KvFault'));
    await vi.advanceTimersByTimeAsync(499);
    await call();
    expect(network).toHaveBeenCalledTimes(1);
    expect(String(network.mock.lastCall?.[1]?.body)).toMatch(/ping/i);
  });

  test('a probe that fails changes nothing; one that is answered, and no second, puts it in use again', async () => {
    await vi.advanceTimersByTimeAsync(1_000);
    await calls(3);
    expect(network, 'the probe that fails').toHaveBeenCalledTimes(1);
    answer = 'value';
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await Promise.all([call(), call(), call()])).toEqual(Array(3).fill('KvFault'));
    await vi.advanceTimersByTimeAsync(1);
    expect(network, 'the probe that is answered').toHaveBeenCalledTimes(2);
    expect(await call()).toBe('stored');
  });

  test('the log has one line for the whole outage and one for its end', async () => {
    for (let second = 0; second < 10; second += 1) {
      await calls(5);
      await vi.advanceTimersByTimeAsync(1_000);
    }
    expect(vi.mocked(log.warn).mock.calls.map(([, message]) => message)).toEqual(['cache skipped']);
    expect(log.info).not.toHaveBeenCalled();
    answer = 'value';
    await calls(5);
    expect(vi.mocked(log.info).mock.calls).toEqual([['cache in use again']]);
    expect(log.warn).toHaveBeenCalledTimes(1);
  });
});
