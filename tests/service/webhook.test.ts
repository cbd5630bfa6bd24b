import { describe, expect, test } from 'vitest';
import { OLD_SIGNING_SECRET } from '../harness/keys';
import { deliver, HOOK, me, now, send, signatureHeaders, tokenFor, userCreated } from '../harness/requests';
import { sharedService } from '../vitest/shared-service';

const service = sharedService();

const invalidSignature = { status: 400, body: { message: 'Invalid webhook signature' } };
const invalidEvent = { status: 400, body: { message: 'Invalid webhook event' } };
const acknowledged = (eventType: string) => ({ status: 200, body: { received: true, eventType } });

const { rowsOf } = service.database;
/** Returns the Unix time in seconds, `fromNow` seconds from now. */
const seconds = (fromNow: number) => String(now() + fromNow);

describe('POST /webhooks/idp/v1/user-created', () => {
  test('The webhook registers the user of a user.created event, and a later request of the user gets the same internal id', async () => {
    expect(await deliver(service.url, userCreated('user_hook'))).toMatchObject(acknowledged('user.created'));
    const { body } = await me(service.url, tokenFor(service.idp, 'user_hook'));
    expect(await rowsOf('user_hook')).toMatchObject([{ id: Object(body).userId }]);
  });

  test('Repeated and reordered webhook deliveries do not create a second user', async () => {
    const body = userCreated('user_again');
    const headers = signatureHeaders(body);
    const updated = JSON.stringify({ type: 'test.updated', data: { id: 'user_again' } });
    expect(await deliver(service.url, updated)).toMatchObject(acknowledged('test.updated'));
    for (let delivery = 0; delivery < 3; delivery += 1) {
      expect(await deliver(service.url, body, headers)).toMatchObject(acknowledged('user.created'));
    }
    expect(await rowsOf('user_again')).toHaveLength(1);
  });

  test.each([
    ['a type other than user.created', { type: 'test.updated', data: { id: 'user_other' } }],
    ['the type user.created with capital letters', { type: 'User.Created', data: { id: 'user_other' } }],
    ['a deleted user', { type: 'test.deleted', data: { id: 'user_other', deleted: true } }],
    ['an empty type', { type: '', data: { id: 'user_other' } }],
    ['no data', { type: 'user.created' }],
    ['data that is not an object', { type: 'user.created', data: 'user_other' }],
    ['no id', { type: 'user.created', data: {} }],
    ['an id that is null', { type: 'user.created', data: { id: null } }],
    ['an empty id', { type: 'user.created', data: { id: '' } }],
    ['an invalid id and a type other than user.created', { type: 'test.updated', data: { id: 7 } }],
  ])('The webhook acknowledges an event that contains no user to register: %s', async (_what, event) => {
    expect(await deliver(service.url, JSON.stringify(event))).toMatchObject(acknowledged(event.type));
    expect(await rowsOf('user_other')).toEqual([]);
  });

  test.each([
    ['not JSON', 'hello'],
    ['an array', '[]'],
    ['null', 'null'],
    ['no type', '{"data":{"id":"user_x"}}'],
    ['a type that is not a string', '{"type":1,"data":{"id":"user_x"}}'],
    ['an id that is a number', userCreated(7)],
    ['an id that is false', userCreated(false)],
    ['an id that is an object', userCreated({ id: 'x' })],
    ['an id with a NUL character', userCreated('a\0b')],
    ['an id with a lone surrogate', String.raw`{"type":"user.created","data":{"id":"a\udfff"}}`],
    ['an id of 256 characters', userCreated('u'.repeat(256))],
  ])('A correctly signed webhook body that is not a valid event gets a 400: %s', async (_what, body) => {
    expect(await deliver(service.url, body)).toMatchObject(invalidEvent);
  });

  test('A delivery without a body gets a 400 "Missing body", whether its signature headers are complete, incomplete or missing', async () => {
    const missing = { status: 400, body: { message: 'Missing body' } };
    expect(await send(`${service.url}${HOOK}`, { method: 'POST' })).toMatchObject(missing);
    expect(await deliver(service.url, '')).toMatchObject(missing);
    expect(await deliver(service.url, '', { 'svix-id': 'msg.1' })).toMatchObject(missing);
  });

  test.each([
    ['white space', '{\n\t"type" : "user.created",\r\n "data": {"id": "user_bytes_1"}  }\n'],
    ['escapes', String.raw`{"type":"user\u002ecreated","data":{"id":"user_bytes_\u0032"}}`],
    ['duplicate keys', '{"type":"x","type":"user.created","data":{"id":"no"},"data":{"id":"user_bytes_3"}}'],
    ['unusual number formats', '{"type":"user.created","n":1.0,"m":1e2,"data":{"id":"user_bytes_4"}}'],
    ['raw Unicode', '{"type":"user.created", "name":"Zoë 😀","data":{"id":"user_bytes_5"}}'],
  ])('The webhook signature covers the exact bytes of the body: %s', async (_what, body) => {
    expect(await deliver(service.url, body)).toMatchObject(acknowledged('user.created'));
    expect(await deliver(service.url, `${body} `, signatureHeaders(body))).toMatchObject(invalidSignature);
    expect(
      await deliver(service.url, JSON.stringify(JSON.parse(body)), signatureHeaders(body)),
    ).toMatchObject(invalidSignature);
  });

  test('A webhook body is rejected if its bytes differ from the signed bytes, even if a lenient UTF-8 decoder returns the same text for both', async () => {
    const body = JSON.stringify({ type: 'user.created', data: { id: 'user_\ufffd' } });
    const withInvalidByte = Buffer.from(body.replace('\ufffd', '?'));
    withInvalidByte[withInvalidByte.indexOf('?')] = 0xff;
    const withByteOrderMark = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(body)]);
    for (const bytes of [withInvalidByte, withByteOrderMark]) {
      expect(await deliver(service.url, bytes, signatureHeaders(body))).toMatchObject(invalidSignature);
    }
    expect(await rowsOf('user_\ufffd')).toEqual([]);
  });

  test('A signed webhook body that is not UTF-8 gets the same response as a body with an invalid signature', async () => {
    // The service verifies the decoded text, so it cannot verify bytes that do not decode.
    expect(await deliver(service.url, new Uint8Array([0x7b, 0xff, 0x7d]))).toMatchObject(invalidSignature);
  });

  describe('signatures', () => {
    const body = userCreated('user_signed');
    const valid = () => signatureHeaders(body);
    const without = (name: string) => {
      const headers = valid();
      delete headers[name];
      return headers;
    };

    test.each([
      ['no headers', () => ({})],
      ['no id', () => without('svix-id')],
      ['no timestamp', () => without('svix-timestamp')],
      ['no signature', () => without('svix-signature')],
      ['an empty id', () => ({ ...valid(), 'svix-id': '' })],
      ['a signature of another body', () => signatureHeaders(userCreated('user_else'))],
      ['an id that was not signed', () => ({ ...valid(), 'svix-id': 'msg_else' })],
      ['an id with a dot', () => signatureHeaders(body, { id: 'msg.signed' })],
      [
        'a signature by an unknown secret',
        () => signatureHeaders(body, { secret: `whsec_${Buffer.alloc(32).toString('base64')}` }),
      ],
      [
        'a signature of version v2',
        () => ({ ...valid(), 'svix-signature': (valid()['svix-signature'] ?? '').replace('v1,', 'v2,') }),
      ],
      [
        'a signature without a version',
        () => ({ ...valid(), 'svix-signature': (valid()['svix-signature'] ?? '').replace('v1,', '') }),
      ],
      ['a version without a signature', () => ({ ...valid(), 'svix-signature': 'v1' })],
      [
        'more than 16 signatures',
        () => ({ ...valid(), 'svix-signature': `${valid()['svix-signature']}${' v1,AAAA'.repeat(16)}` }),
      ],
      ['an empty signature', () => ({ ...valid(), 'svix-signature': 'v1,' })],
      ['a timestamp that is too old', () => signatureHeaders(body, { timestamp: seconds(-302) })],
      ['a timestamp that is too new', () => signatureHeaders(body, { timestamp: seconds(302) })],
      ['a timestamp in milliseconds', () => signatureHeaders(body, { timestamp: String(Date.now()) })],
      ['a timestamp that ends in letters', () => ({ ...valid(), 'svix-timestamp': `${seconds(0)}abc` })],
      ['a timestamp with a fraction', () => ({ ...valid(), 'svix-timestamp': `${seconds(0)}.9` })],
      ['a timestamp with a sign', () => ({ ...valid(), 'svix-timestamp': `+${seconds(0)}` })],
      ['a timestamp with a leading zero', () => ({ ...valid(), 'svix-timestamp': `0${seconds(0)}` })],
      ['a timestamp that is not a number', () => signatureHeaders(body, { timestamp: 'NaN' })],
    ])('A webhook delivery is rejected because of its headers: %s', async (_what, headers) => {
      expect(await deliver(service.url, body, headers())).toMatchObject(invalidSignature);
      expect(await rowsOf('user_signed')).toEqual([]);
    });

    test.each([
      ['the Standard Webhooks names', () => signatureHeaders(body, { names: 'webhook' })],
      [
        'a mix of svix and Standard Webhooks names',
        () => {
          const { 'svix-id': id = '', ...rest } = valid();
          return { ...rest, 'webhook-id': id };
        },
      ],
      ['a signature by the previous secret', () => signatureHeaders(body, { secret: OLD_SIGNING_SECRET })],
      [
        'a signature that is almost 5 minutes old',
        () => signatureHeaders(body, { timestamp: seconds(-290) }),
      ],
      [
        'a valid signature after two invalid signatures',
        () => {
          const { 'svix-signature': signature, ...rest } = valid();
          return { ...rest, 'svix-signature': `v1,AAAA v2,BBBB ${signature}` };
        },
      ],
    ])('A webhook delivery is accepted with these headers: %s', async (_what, headers) => {
      expect(await deliver(service.url, body, headers())).toMatchObject(acknowledged('user.created'));
    });
  });

  test('The webhook responds 413 to a body above 256 KiB and accepts a body of 256 KiB', async () => {
    const event = (bytes: number) => {
      const json = JSON.stringify({ type: 'test.updated', data: { id: 'u' } });
      return json + ' '.repeat(bytes - json.length);
    };
    const limit = 256 * 1024;
    expect(await deliver(service.url, event(limit))).toMatchObject(acknowledged('test.updated'));
    const tooLarge = { status: 413, body: { message: 'Payload too large' } };
    expect(await deliver(service.url, event(limit + 1))).toMatchObject(tooLarge);
    expect(await deliver(service.url, event(limit + 1), {})).toMatchObject(tooLarge);
  });
});
