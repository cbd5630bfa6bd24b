import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Telemetry } from '#lib/base/telemetry';
import { enableTelemetry } from '#lib/base/telemetry';
import type { Register } from '#lib/core/register';
import { withLogFields } from '#lib/http/request-log';
import { limitWebhookBody, receiveWebhook } from '#lib/webhook';
import { signatureHeaders, userCreated, type WebhookSigning } from '../harness/requests';

const registerByIdentityProviderUserId = vi.hoisted(() => vi.fn<Register>());
vi.mock('#lib/core/register', async (original) => ({
  ...(await original<typeof import('#lib/core/register')>()),
  createRegister: () => registerByIdentityProviderUserId,
}));

/** The test vector of the Standard Webhooks libraries and of svix. */
const vector = {
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  timestamp: 1614265330,
  payload: '{"test": 2432232314}',
  signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
} as const;

const [otherSecret = '', longSecret = ''] = [Buffer.alloc(24, 1), Buffer.alloc(64, 2)].map(
  (bytes) => `whsec_${bytes.toString('base64')}`,
);

// The payload of the test vector is not an event. If the service accepts the signature, it reports this problem.
const verified = 'Invalid webhook event';
const rejected = 'Invalid webhook signature';

/** Passes a delivery to `receiveWebhook`. Returns the acknowledged type in an array, or the error message. */
const receive = (payload: string, headers: Record<string, string>) =>
  receiveWebhook(payload, new Headers(headers), [otherSecret, longSecret, vector.secret]).then(
    ({ eventType }) => [eventType],
    (error: Error) => error.message,
  );

/** Signs a payload as the sender of the test vector does. */
const sign = (payload: string, signing: WebhookSigning = {}) =>
  signatureHeaders(payload, {
    secret: vector.secret,
    id: vector.id,
    timestamp: String(vector.timestamp),
    ...signing,
  });
const receiveSigned = (payload: string, signing?: WebhookSigning) => receive(payload, sign(payload, signing));

/** Applies `changes` to the test vector. An undefined value removes the header. */
function receiveVector(changes: Record<string, string | undefined>, prefix = 'svix') {
  const { id, timestamp, signature } = vector;
  const { payload = vector.payload, ...parts } = {
    id,
    timestamp: String(timestamp),
    signature,
    ...changes,
  };
  const headers = Object.entries(parts).flatMap(([name, value]) =>
    value === undefined ? [] : [[`${prefix}-${name}`, value]],
  );
  return receive(payload, Object.fromEntries(headers));
}

beforeEach(() => {
  registerByIdentityProviderUserId.mockReset().mockResolvedValue({ state: 'forgotten' });
  vi.useFakeTimers({ toFake: ['Date'], now: vector.timestamp * 1000 });
});
afterEach(() => {
  vi.useRealTimers();
});

test.each(['svix', 'webhook'])(
  'The signature of the test vector is accepted if the header names start with %s-',
  async (prefix) => {
    expect(await receiveVector({}, prefix)).toBe(verified);
  },
);

test('A delivery of any sender that signs as the library of Standard Webhooks does is accepted', async () => {
  const [payload, id] = ['{"type":"user.created","data":{"id":"ada"}}', 'msg-1'];
  const signature = new Webhook(vector.secret).sign(id, new Date(), payload);
  const headers = { 'webhook-id': id, 'webhook-timestamp': String(vector.timestamp) };
  expect(await receive(payload, { ...headers, 'webhook-signature': signature })).toEqual(['user.created']);
  expect(await receive(`${payload} `, { ...headers, 'webhook-signature': signature })).toBe(rejected);
});

test('A delivery may have header names of both kinds', async () => {
  const { 'svix-id': id = '', ...others } = sign(vector.payload);
  expect(await receive(vector.payload, { ...others, 'webhook-id': id })).toBe(verified);
});

test.each([
  ['id', undefined],
  ['id', ''],
  ['id', `${vector.id}.${vector.timestamp}`],
  ['timestamp', undefined],
  ['timestamp', '1614265330abc'],
  ['timestamp', '1614265330.9'],
  ['timestamp', '+1614265330'],
  ['timestamp', '01614265330'],
  ['signature', undefined],
  ['signature', ''],
  ['signature', 'v1'],
  ['signature', 'v1,'],
  ['signature', 'g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='],
  ['signature', 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OF='],
  ['signature', 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE'],
  ['signature', 'v1a,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='],
  ['signature', 'v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='],
  ['signature', `${vector.signature}${' v1,AAAA'.repeat(16)}`],
])('The test vector is rejected if its %s is changed to %s', async (part, value) => {
  expect(await receiveVector({ [part]: value })).toBe(rejected);
});

test('A delivery whose body, id or timestamp was changed in any place after it was signed is rejected', async () => {
  const change = fc.record({
    part: fc.constantFrom('payload', 'id', 'timestamp'),
    at: fc.nat(),
    removed: fc.nat({ max: 1 }),
    inserted: fc.oneof(fc.string({ maxLength: 2 }), fc.constantFrom('\0', '\ufeff', '\r\n')),
  });
  await fc.assert(
    fc.asyncProperty(change, async ({ part, at, removed, inserted }) => {
      const signed = String(Reflect.get(vector, part));
      const start = at % signed.length;
      const changed = signed.slice(0, start) + inserted + signed.slice(start + removed);
      fc.pre(changed !== signed && (part === 'payload' || /^[\x21-\x7e]+$/.test(changed)));
      expect(await receiveVector({ [part]: changed })).toBe(rejected);
    }),
  );
});

test.each<[result: string, string, WebhookSigning]>([
  [rejected, 'an id that contains a dot', { id: 'msg.signed' }],
  [rejected, 'an unknown secret', { secret: `whsec_${Buffer.alloc(32).toString('base64')}` }],
  [rejected, 'a timestamp more than 5 minutes ago', { timestamp: String(vector.timestamp - 301) }],
  [rejected, 'a timestamp more than 5 minutes ahead', { timestamp: String(vector.timestamp + 301) }],
  [rejected, 'a timestamp in milliseconds', { timestamp: String(vector.timestamp * 1000) }],
  [rejected, 'a timestamp that is not a number', { timestamp: 'NaN' }],
  [verified, 'one of several secrets', { secret: otherSecret }],
  [verified, 'a timestamp 5 minutes ago', { timestamp: String(vector.timestamp - 300) }],
])('The result of a correct signature is "%s" with %s', async (result, _what, signing) => {
  expect(await receiveSigned(vector.payload, signing)).toBe(result);
});

test.each(['123', ' ', ',', 'v1,AAAA', 'v1,AAAA v2,BBBB'])(
  'The signature of the test vector is accepted if its header also contains the invalid entry %j',
  async (other) => {
    expect(await receiveVector({ signature: `${other} ${vector.signature}` })).toBe(verified);
    expect(await receiveVector({ signature: `${vector.signature} ${other}` })).toBe(verified);
  },
);

test.each([
  ['white space', '{\n\t"type" : "test.updated",\r\n "data": {}  }\n'],
  ['duplicate keys', '{"type":"x","type":"test.updated"}'],
  ['a key __proto__', '{"type":"test.updated", "__proto__":{"type":"user.created","data":{"id":"user_1"}}}'],
])('The webhook signature covers the exact bytes of the body: %s', async (_what, payload) => {
  expect(await receiveSigned(payload)).toEqual(['test.updated']);
  expect(await receive(`${payload} `, sign(payload))).toBe(rejected);
  expect(await receive(JSON.stringify(JSON.parse(payload)), sign(payload))).toBe(rejected);
});

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
  await receiveVector(changes);
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
  expect(await receiveVector({ payload: '', id: '', timestamp: 'x', signature: '' })).toBe('Missing body');
});

test.each(['hello', '[]', 'null', '{"data":{"id":"user_x"}}', '{"type":1,"data":{"id":"user_x"}}'])(
  'A body that is not an event gets a 400, even if its signature is valid: %s',
  async (body) => {
    expect(await receiveSigned(body)).toBe('Invalid webhook event');
  },
);

test.each([
  { type: 'user.created' },
  { type: 'user.created', data: {} },
  { type: 'user.created', data: { id: '' } },
  { type: 'User.Created', data: { id: 'user_1' } },
  { type: 'user.updated', data: { id: 7 } },
  { type: '', data: { id: 'user_1' } },
])('An event that contains no user to register is acknowledged: %j', async (event) => {
  expect(await receiveSigned(JSON.stringify(event))).toEqual([event.type]);
  expect(registerByIdentityProviderUserId).not.toHaveBeenCalled();
});

test.each([7, false, { id: 'x' }, 'a\0b', 'a\udfff', 'u'.repeat(256)])(
  'A user.created event with an id that cannot be registered gets a 400: %j',
  async (id) => {
    expect(await receiveSigned(userCreated(id))).toBe('Invalid webhook event');
    expect(registerByIdentityProviderUserId).not.toHaveBeenCalled();
  },
);

test('The log contains at most 64 characters of the message id and at most 64 of the event type', async () => {
  const fields = {};
  const payload = JSON.stringify({ type: 't'.repeat(65) });
  await withLogFields(fields, () => receiveSigned(payload, { id: 'm'.repeat(65) }));
  expect(fields).toEqual({ messageId: 'm'.repeat(64), eventType: 't'.repeat(64) });
});

test('The handler of an event without a timestamp gets the time of the delivery and the whole message id', async () => {
  const handle = vi.fn(async () => undefined);
  const payload = JSON.stringify({ type: 'user.updated', data: { id: 'user_1' } });
  const messageId = 'm'.repeat(100);
  const headers = new Headers(sign(payload, { id: messageId }));
  await receiveWebhook(payload, headers, [vector.secret], { 'user.updated': handle });
  const delivery = { messageId, occurredAt: vector.timestamp * 1000 };
  expect(handle).toHaveBeenCalledExactlyOnceWith({ id: 'user_1' }, delivery);
});
