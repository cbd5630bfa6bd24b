import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { enableTelemetry } from '#lib/base/log';
import type { Telemetry } from '#lib/telemetry/port';
import { limitWebhookBody, receiveWebhook } from '#lib/webhook';
import { BUILD_TIME_VALUES } from '../harness/build';

/** The test vector of the Standard Webhooks libraries and of svix. */
const vector = {
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  timestamp: 1614265330,
  payload: '{"test": 2432232314}',
  signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
} as const;

const OTHER_SECRETS = [Buffer.alloc(24, 1), Buffer.alloc(64, 2)].map((bytes) => bytes.toString('base64'));

/** Applies `changes` to the test vector and passes it to `receiveWebhook`. Returns `acknowledged` or the error message. */
const receive = (
  changes: Partial<Record<'id' | 'timestamp' | 'signature' | 'payload', string>> = {},
  prefix = 'svix',
) =>
  receiveWebhook(
    changes.payload ?? vector.payload,
    new Headers({
      [`${prefix}-id`]: changes.id ?? vector.id,
      [`${prefix}-timestamp`]: changes.timestamp ?? String(vector.timestamp),
      [`${prefix}-signature`]: changes.signature ?? vector.signature,
    }),
    [...OTHER_SECRETS, vector.secret],
  ).then(
    () => 'acknowledged',
    (error: Error) => error.message,
  );

beforeAll(() => {
  Object.assign(process.env, BUILD_TIME_VALUES);
});
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: vector.timestamp * 1000 });
});
afterEach(() => {
  vi.useRealTimers();
});

describe('receiveWebhook', () => {
  // The payload of the test vector is not an event. If the service accepts the signature, it reports this problem.
  const verified = 'Invalid webhook event';
  const rejected = 'Invalid webhook signature';

  test.each(['svix', 'webhook'])(
    'The signature of the test vector is accepted if the header names start with %s-',
    async (prefix) => {
      expect(await receive({}, prefix)).toBe(verified);
    },
  );

  test.each([
    ['payload', '{"test": 2432232315}'],
    ['payload', '{"test":2432232314}'],
    ['id', 'msg_p5jXN8AQM9LWM0D4loKWxJel'],
    ['id', `${vector.id}.${vector.timestamp}`],
    ['timestamp', '1614265331'],
    ['timestamp', '1614265330abc'],
    ['signature', 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OF='],
    ['signature', 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE'],
    ['signature', 'v1a,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='],
  ])('The test vector is rejected if its %s is changed to %s', async (part, value) => {
    expect(await receive({ [part]: value })).toBe(rejected);
  });

  test.each(['123', ' ', ',', 'v1,AAAA'])(
    'The signature of the test vector is accepted if its header also contains the invalid entry %j',
    async (other) => {
      expect(await receive({ signature: `${other} ${vector.signature}` })).toBe(verified);
      expect(await receive({ signature: `${vector.signature} ${other}` })).toBe(verified);
    },
  );

  test.each([
    ['verified', {}],
    ['rejected', { id: 'msg_other' }],
  ])('The verification of a delivery is a span with the outcome %s', async (outcome, changes) => {
    const spans: unknown[] = [];
    const withSpan: Telemetry['withSpan'] = async (name, work, outcomeOf) => {
      const result = await work();
      spans.push([name, outcomeOf(result)]);
      return result;
    };
    enableTelemetry(Object.create({ withSpan }));
    await receive(changes);
    expect(spans).toEqual([['verify webhook', outcome]]);
  });

  test('A body above 256 KiB is a 413, and a body that is not UTF-8 has an invalid signature', async () => {
    const textOf = (body: string | Uint8Array<ArrayBuffer>) =>
      limitWebhookBody(new Request('http://localhost/', { method: 'POST', body })).text();
    expect(await textOf('x'.repeat(256 * 1024))).toHaveLength(256 * 1024);
    await expect(textOf('x'.repeat(256 * 1024 + 1))).rejects.toMatchObject({ status: 413 });
    await expect(textOf(Uint8Array.of(0xff))).rejects.toMatchObject({ status: 400, message: rejected });
  });

  test('A delivery with an empty body and invalid headers gets the error for the empty body', async () => {
    expect(await receive({ payload: '', id: '', timestamp: 'x', signature: '' })).toBe('Missing body');
  });
});
