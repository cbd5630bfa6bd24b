import { beforeEach, expect, test, vi } from 'vitest';
import { log } from '#lib/base/log';
import { processState } from '#lib/base/process-state';
import { beginShutdown } from '#lib/base/shutdown';
import { pingDatabase } from '#lib/storage/database';
import { withKv } from '#lib/storage/kv';

vi.mock('#lib/storage/database', () => ({ pingDatabase: vi.fn() }));
vi.mock('#lib/storage/kv', () => ({ withKv: vi.fn() }));
vi.mock('#lib/base/log', () => ({ log: { info: vi.fn(), warn: vi.fn() } }));

let readiness: typeof import('#lib/health').readiness;
let time = 1_000_000;
/** Advances the clock. The default is the time for which a readiness result is reused. */
const later = (milliseconds = 1_000) => {
  time += milliseconds;
};
const down = { errors: { database: 'unavailable' } };
beforeEach(async () => {
  vi.resetModules();
  vi.resetAllMocks();
  vi.spyOn(performance, 'now').mockImplementation(() => time);
  vi.mocked(pingDatabase).mockResolvedValue();
  vi.mocked(withKv).mockImplementation(async (command) =>
    command(Object.create({ ping: async () => 'PONG' })),
  );
  ({ readiness } = await import('#lib/health'));
  return () => vi.restoreAllMocks();
});

test('A process is ready if the database responds, with the status degraded if the cache does not', async () => {
  const ping = vi.fn().mockResolvedValueOnce('PONG').mockRejectedValue(new Error('no response'));
  vi.mocked(withKv).mockImplementation(async (command) => command(Object.create({ ping })));
  expect(await readiness()).toEqual({ status: 'ok' });
  expect(ping).toHaveBeenCalledTimes(1);
  expect(pingDatabase).toHaveBeenCalledExactlyOnceWith(2_000);
  later();
  expect(await readiness()).toEqual({ status: 'degraded' });
  expect([log.warn, log.info].flatMap((logged) => vi.mocked(logged).mock.calls)).toEqual([]);
});

test('A process that shuts down is not ready, although the module of this call is another copy. A shutdown begins once', async () => {
  expect([beginShutdown(), beginShutdown()]).toEqual([true, false]);
  expect(await readiness()).toEqual({ errors: { process: 'stopping' } });
  expect(pingDatabase).not.toHaveBeenCalled();
  Object.assign(
    processState('shutdown', () => ({})),
    { isShuttingDown: false },
  );
});

test('A readiness result is reused for 1 s, even if the result is a failure, and concurrent probes share one check', async () => {
  vi.mocked(pingDatabase).mockRejectedValueOnce(new Error('no response'));
  expect(await Promise.all([readiness(), readiness()])).toEqual([down, down]);
  later(999);
  expect(await readiness()).toEqual(down);
  expect(pingDatabase).toHaveBeenCalledTimes(1);
  later(1);
  expect(await readiness()).toEqual({ status: 'ok' });
});

test('While the database does not respond, only one probe waits, and the others get the previous result at once', async () => {
  expect(await readiness()).toEqual({ status: 'ok' });
  later();
  let fail = (_error: Error) => {};
  vi.mocked(pingDatabase).mockReturnValue(new Promise((_resolve, reject) => (fail = reject)));
  const first = readiness();
  expect(await Promise.all([readiness(), readiness()])).toEqual([{ status: 'ok' }, { status: 'ok' }]);
  later(2_000);
  const late = readiness();
  fail(new Error('no response'));
  expect(await Promise.all([first, late])).toEqual([down, down]);
  expect(pingDatabase).toHaveBeenCalledTimes(2);
});

test('The log has one line for the start and one line for the end of an outage of the database', async () => {
  vi.mocked(pingDatabase).mockRejectedValue(new TypeError('no response'));
  for (let probe = 0; probe < 3; probe += 1) {
    expect(await readiness()).toEqual(down);
    later();
  }
  expect(vi.mocked(log.warn).mock.calls).toEqual([
    [{ error: expect.objectContaining({ name: 'TypeError' }) }, 'not ready'],
  ]);
  vi.mocked(pingDatabase).mockResolvedValue();
  for (let probe = 0; probe < 3; probe += 1) {
    expect(await readiness()).toEqual({ status: 'ok' });
    later();
  }
  expect(vi.mocked(log.info).mock.calls).toEqual([['ready again']]);
});

test('If the database does not respond, the process is not ready after 2 s, and the database gets one query at a time', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  let respond = () => {};
  vi.mocked(pingDatabase).mockReturnValueOnce(new Promise((resolve) => (respond = resolve)));
  for (let probe = 0; probe < 2; probe += 1) {
    const waiting = readiness();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await waiting).toEqual(down);
    later();
  }
  expect(pingDatabase).toHaveBeenCalledTimes(1);
  respond();
  vi.useRealTimers();
  await new Promise(setImmediate);
  expect(await readiness()).toEqual({ status: 'ok' });
});
