import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Telemetry } from '#lib/telemetry/with-span';
import { importAsProcess, startInProcess } from '../harness/in-process';
import { signatureHeaders } from '../harness/requests';

const { kv } = await startInProcess();
/** Imports the modules of lib/ as a new process of the service does. */
const loadProcess = () =>
  importAsProcess(async () => ({
    ...(await import('#lib/guard')),
    ...(await import('#lib/webhook')),
    ...(await import('#lib/telemetry/with-span')),
    ...(await import('#lib/log')),
  }));
const { contextOf, enableTelemetry, receiveWebhook } = await loadProcess();

/** Names and outcomes of the spans, in the order in which they end. */
const spans: [name: string, outcome: string][] = [];
const telemetry: Telemetry = {
  async withSpan(name, work, outcomeOf) {
    const result = await work().catch((error: unknown) => {
      spans.push([name, 'failed']);
      throw error;
    });
    spans.push([name, outcomeOf(result)]);
    return result;
  },
  recordRequest: vi.fn(),
  recordPageUser: vi.fn(),
  breakerOpened: vi.fn(),
  breakerClosed: vi.fn(),
  spanIds: () => undefined,
  flush: async () => undefined,
};
enableTelemetry(telemetry);

beforeEach(() => {
  spans.length = 0;
});
afterEach(async () => {
  vi.useRealTimers();
  kv.beforeCommand = async () => undefined;
});

/** Returns the result of the session check for a signed-in user. */
const verdict = (user: string) => ({ user, issuedAt: () => undefined });

test('The spans of a guarded request report the outcome of each step', async () => {
  await contextOf(verdict('user_spans'));
  expect(spans).toEqual([
    ['cache read', 'miss'],
    ['register', 'created'],
    ['cache write', 'stored'],
    ['guard', 'passed'],
  ]);
  spans.length = 0;
  await contextOf(verdict('user_spans'));
  expect(spans).toEqual([
    ['cache read', 'hit'],
    ['guard', 'passed'],
  ]);
});

test('If the cache fails, the cache read span of a guarded request has the outcome error, and the register span has the outcome existing', async () => {
  await contextOf(verdict('user_without_cache'));
  spans.length = 0;
  kv.beforeCommand = () => Promise.reject(new Error('failed by a test'));
  await contextOf(verdict('user_without_cache'));
  expect(spans).toEqual([
    ['cache read', 'error'],
    ['register', 'existing'],
    ['guard', 'passed'],
  ]);
});

test('The span of a cache write that fails has the outcome error', async () => {
  kv.beforeCommand = async (command) => {
    if (command.toUpperCase() === 'SET') throw new Error('failed by a test');
  };
  await contextOf(verdict('user_not_stored'));
  expect(spans).toContainEqual(['cache write', 'error']);
});

test('The span of a request without a session has the outcome rejected', async () => {
  await contextOf({ user: undefined, reason: 'expired' });
  expect(spans).toEqual([['guard', 'rejected']]);
});

test('The span of a verified webhook has the outcome verified', async () => {
  const payload = '{"type":"user.updated"}';
  await receiveWebhook(payload, new Headers(signatureHeaders(payload)), {});
  expect(spans).toEqual([['verify webhook', 'verified']]);
});

test('The span of a webhook with an invalid signature has the outcome rejected', async () => {
  const headers = new Headers(signatureHeaders('{"type":"user.updated"}'));
  await expect(receiveWebhook('{}', headers, {})).rejects.toThrow('Invalid webhook signature');
  expect(spans).toEqual([['verify webhook', 'rejected']]);
});

test('An outage of the cache is reported once when it begins and once when it ends', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const loaded = await loadProcess();
  const warn = vi.spyOn(loaded.log, 'warn').mockReturnValue();
  const info = vi.spyOn(loaded.log, 'info').mockReturnValue();
  kv.beforeCommand = () => Promise.reject(new Error('failed by a test'));
  for (let call = 0; call < 10; call += 1) await loaded.contextOf(verdict('user_outage'));
  expect(warn).toHaveBeenCalledExactlyOnceWith({ error: expect.anything() }, 'cache skipped');
  expect(
    [telemetry.breakerOpened, telemetry.breakerClosed].map((each) => vi.mocked(each).mock.calls),
  ).toEqual([[[]], []]);
  kv.beforeCommand = async () => undefined;
  vi.advanceTimersByTime(1_000);
  await loaded.contextOf(verdict('user_outage'));
  await expect.poll(() => vi.mocked(telemetry.breakerClosed).mock.calls).toEqual([[]]);
  expect(info).toHaveBeenCalledExactlyOnceWith('cache in use again');
  expect(vi.mocked(telemetry.breakerOpened).mock.calls).toEqual([[]]);
});
