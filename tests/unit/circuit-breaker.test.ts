import { beforeEach, expect, test, vi } from 'vitest';
import { type Breaker, circuitBreaker } from '#lib/concurrency/circuit-breaker';

// A circuit breaker passes calls to a dependency. After several consecutive failures, the breaker opens: it rejects the calls,
// and sends probes to the dependency. A successful probe closes the breaker.
const FAILURE_THRESHOLD = 5;
const RESET_TIMEOUT_MS = 1_000;

let time = 0;
const probe = vi.fn<() => Promise<unknown>>();
const onOpen = vi.fn();
const onClose = vi.fn();
let breaker: Breaker;

beforeEach(() => {
  vi.resetAllMocks();
  time = 0;
  breaker = circuitBreaker({
    failureThreshold: FAILURE_THRESHOLD,
    resetTimeoutMs: RESET_TIMEOUT_MS,
    probe,
    now: () => time,
    onOpen,
    onClose,
  });
});

const failure = new Error('no response');
/** Starts a call that stays pending until the test settles it. */
function startCall() {
  let end: { resolve: (value: string) => void; reject: (error: Error) => void } | undefined;
  const call = breaker(() => new Promise<string>((resolve, reject) => (end = { resolve, reject })));
  return { call: call.catch(() => undefined), end };
}

/** Makes one call and advances the clock by 1 ms. Returns true if the breaker let the call through. */
async function isCalled(outcome: () => Promise<unknown>): Promise<boolean> {
  const call = vi.fn(outcome);
  await breaker(call).catch(() => undefined);
  time += 1;
  return call.mock.calls.length > 0;
}
const fails = () => isCalled(() => Promise.reject(failure));
const succeeds = () => isCalled(() => Promise.resolve());
async function failTimes(count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) await fails();
}

test('A closed breaker settles a call with the result of the dependency', async () => {
  expect(await breaker(async () => 'stored')).toBe('stored');
  await expect(breaker(() => Promise.reject(failure))).rejects.toBe(failure);
});

test('The breaker stays closed after four consecutive failures and opens after the fifth', async () => {
  await failTimes(FAILURE_THRESHOLD - 1);
  expect(onOpen).not.toHaveBeenCalled();
  expect(await fails(), 'the fifth call reaches the dependency').toBe(true);
  expect(onOpen).toHaveBeenCalledExactlyOnceWith(failure);
  expect(await succeeds()).toBe(false);
  await expect(breaker(async () => 'stored')).rejects.toThrow('Circuit breaker is open');
});

test('A success resets the failure count of the breaker', async () => {
  await failTimes(FAILURE_THRESHOLD - 1);
  await succeeds();
  await failTimes(FAILURE_THRESHOLD - 1);
  expect(onOpen).not.toHaveBeenCalled();
  await fails();
  expect(onOpen).toHaveBeenCalledTimes(1);
});

test('The failures of concurrent calls count as one failure', async () => {
  const burst = Array.from({ length: 20 }, () => {
    time += 1;
    return startCall();
  });
  time += 500;
  for (const { end } of burst) end?.reject(failure);
  await Promise.all(burst.map(({ call }) => call));
  time += 1;
  await failTimes(FAILURE_THRESHOLD - 2);
  expect(onOpen).not.toHaveBeenCalled();
  await fails();
  expect(onOpen).toHaveBeenCalledTimes(1);
});

test('An open breaker sends one probe at a time, after the reset timeout and only when a call arrives', async () => {
  await failTimes(FAILURE_THRESHOLD);
  let endProbe = (_error: Error) => {};
  probe.mockReturnValue(new Promise((_resolve, reject) => (endProbe = reject)));
  time += RESET_TIMEOUT_MS - 2;
  await succeeds();
  expect(probe, 'no probe before the reset timeout').not.toHaveBeenCalled();
  time += 60_000;
  expect(probe, 'no probe without a call').not.toHaveBeenCalled();
  for (let call = 0; call < 3; call += 1) expect(await succeeds(), 'no call waits for the probe').toBe(false);
  expect(probe).toHaveBeenCalledTimes(1);
  endProbe(failure);
  await expect
    .poll(async () => {
      time += RESET_TIMEOUT_MS;
      await succeeds();
      return probe.mock.calls.length;
    })
    .toBe(2);
  expect(onOpen).toHaveBeenCalledTimes(1);
  expect(onClose).not.toHaveBeenCalled();
});

test('A successful probe closes the breaker and resets the failure count', async () => {
  await failTimes(FAILURE_THRESHOLD);
  probe.mockResolvedValue('PONG');
  time += RESET_TIMEOUT_MS;
  expect(await succeeds()).toBe(false);
  await expect.poll(() => onClose.mock.calls.length).toBe(1);
  await failTimes(FAILURE_THRESHOLD - 1);
  expect(onOpen).toHaveBeenCalledTimes(1);
  expect(await succeeds()).toBe(true);
});

test('A call that started before the outage and succeeds during the outage does not close the breaker', async () => {
  const early = startCall();
  await failTimes(FAILURE_THRESHOLD);
  early.end?.resolve('late');
  expect(await early.call).toBe('late');
  expect(await succeeds()).toBe(false);
});

test('Failures of consecutive calls count even if they happen within one millisecond', async () => {
  for (let call = 0; call < FAILURE_THRESHOLD; call += 1) {
    await breaker(() => Promise.reject(failure)).catch(() => undefined);
  }
  expect(onOpen).toHaveBeenCalledTimes(1);
});

test('A call that fails after the breaker has opened does not open the breaker again', async () => {
  await failTimes(FAILURE_THRESHOLD - 1);
  const [first, second] = [startCall(), startCall()];
  for (const { end, call } of [first, second]) {
    end?.reject(failure);
    await call;
  }
  expect(onOpen).toHaveBeenCalledTimes(1);
});

test('After a failed probe, the next probe starts one reset timeout later', async () => {
  await failTimes(FAILURE_THRESHOLD);
  probe.mockRejectedValue(failure);
  const probesAt = async (now: number) => {
    time = now;
    await breaker(async () => undefined).catch(() => undefined);
    await Promise.resolve();
    return probe.mock.calls.length;
  };
  // The last failure happens at `openedAt`: the first call fails at 0 ms, and the clock advances by 1 ms after each call.
  const openedAt = FAILURE_THRESHOLD - 1;
  expect(await probesAt(openedAt + RESET_TIMEOUT_MS - 1)).toBe(0);
  const failedAt = openedAt + RESET_TIMEOUT_MS;
  expect(await probesAt(failedAt)).toBe(1);
  expect(await probesAt(failedAt + RESET_TIMEOUT_MS - 1)).toBe(1);
  expect(await probesAt(failedAt + RESET_TIMEOUT_MS)).toBe(2);
});
