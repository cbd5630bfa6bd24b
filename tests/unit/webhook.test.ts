import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { receiveWebhook } from '#lib/webhook';
import { BUILD_TIME_VALUES } from '../harness/build';

/** The vector that the Standard Webhooks libraries and svix's own share. */
const vector = {
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  timestamp: 1614265330,
  payload: '{"test": 2432232314}',
  signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
} as const;

const outcome = (
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
  ).then(
    () => 'acknowledged',
    (error: Error) => error.message,
  );

beforeAll(() => {
  Object.assign(process.env, BUILD_TIME_VALUES, { IDP_WEBHOOK_SIGNING_SECRET: vector.secret });
});
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: vector.timestamp * 1000 });
});
afterEach(() => {
  vi.useRealTimers();
});

describe('the vector of Standard Webhooks and svix', () => {
  // It is no event of an identity provider: to be refused for that means that its signature was accepted.
  const verified = 'Invalid webhook event';
  const refused = 'Invalid webhook signature';

  test.each(['svix', 'webhook'])('is verified under the names %s-*', async (prefix) => {
    expect(await outcome({}, prefix)).toBe(verified);
  });

  test.each([
    ['payload', '{"test": 2432232315}'],
    ['payload', '{"test":2432232314}'],
    ['id', 'msg_p5jXN8AQM9LWM0D4loKWxJel'],
    ['timestamp', '1614265331'],
    ['signature', 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OF='],
    ['signature', 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE'],
    ['signature', 'v1a,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='],
  ])('is refused with another %s: %s', async (part, value) => {
    expect(await outcome({ [part]: value })).toBe(refused);
  });

  test.each(['123', ' ', ',', 'v1,AAAA'])('is verified among others: %j', async (other) => {
    expect(await outcome({ signature: `${other} ${vector.signature}` })).toBe(verified);
    expect(await outcome({ signature: `${vector.signature} ${other}` })).toBe(verified);
  });

  test.each([
    [-300, verified],
    [300, verified],
    [-301, refused],
    [301, refused],
  ])('with the clock %i s off is: %s', async (offset, message) => {
    vi.setSystemTime((vector.timestamp + offset) * 1000);
    expect(await outcome()).toBe(message);
  });

  test.each([
    '1614265330abc',
    '1614265330.9',
    '01614265330',
    '+1614265330',
    ' 1614265330 1',
    '1.61426533e9',
    '',
  ])('is refused with its timestamp spelled %j, though that parses to the same number', async (timestamp) => {
    expect(await outcome({ timestamp })).toBe(refused);
  });
});
