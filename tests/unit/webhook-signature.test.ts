import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { Webhook, WebhookVerificationError } from 'svix';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { decodeSigningSecret, verifyWebhookSignature } from '#lib/crypto/webhook-signature';

// The tests compare lib/crypto/webhook-signature.ts ("this implementation") with svix, the library of Clerk's webhook provider.
vi.mock('node:crypto', { spy: true });

/** The test vector of the Standard Webhooks libraries and of svix. */
const VECTOR = {
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  timestamp: 1614265330,
  payload: '{"test": 2432232314}',
  signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
} as const;
const NOW = VECTOR.timestamp;

const secretOf = (byte: number, bytes: number) => `whsec_${Buffer.alloc(bytes, byte).toString('base64')}`;
const SECRETS = [VECTOR.secret, secretOf(1, 24), secretOf(2, 64)];
const FOREIGN_SECRET = secretOf(3, 32);
const reference = new Map([...SECRETS, FOREIGN_SECRET].map((secret) => [secret, new Webhook(secret)]));

/** Signs with svix and returns the base64 signature without the prefix `v1,`. */
function sign(secret: string, id: string, timestamp: number, payload: string): string {
  const signature = new Webhook(secret).sign(id, new Date(timestamp * 1000), payload);
  return signature.slice('v1,'.length);
}

interface Delivery {
  readonly payload: string;
  readonly headers: Headers;
}

/** Returns the delivery of the test vector with changes. */
function delivery(
  changes: Partial<Record<'id' | 'timestamp' | 'signature' | 'payload', string>> = {},
): Delivery {
  return {
    payload: changes.payload ?? VECTOR.payload,
    headers: new Headers({
      'svix-id': changes.id ?? VECTOR.id,
      'svix-timestamp': changes.timestamp ?? String(VECTOR.timestamp),
      'svix-signature': changes.signature ?? VECTOR.signature,
    }),
  };
}

/** Returns the message id if this implementation accepts the delivery with one of the secrets. */
const verify = ({ payload, headers }: Delivery, secrets: readonly string[] = SECRETS) =>
  verifyWebhookSignature(payload, headers, secrets.map(decodeSigningSecret))?.id;

/** Returns true if svix accepts the delivery with one of the secrets. */
function svixAccepts({ payload, headers }: Delivery, secrets: readonly string[] = SECRETS): boolean {
  return secrets.some((secret) => {
    try {
      reference.get(secret)?.verify(payload, Object.fromEntries(headers));
      return true;
    } catch (error) {
      if (error instanceof WebhookVerificationError) return false;
      throw error;
    }
  });
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: NOW * 1000 });
  vi.mocked(createHmac).mockClear();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('verifyWebhookSignature', () => {
  test('The published test vector is valid in this implementation and in svix', () => {
    expect(verify(delivery())).toBe(VECTOR.id);
    expect(svixAccepts(delivery())).toBe(true);
    expect(`v1,${sign(VECTOR.secret, VECTOR.id, VECTOR.timestamp, VECTOR.payload)}`).toBe(VECTOR.signature);
  });

  test('A signing secret is accepted with and without its prefix', () => {
    expect(verify(delivery(), [VECTOR.secret])).toBe(VECTOR.id);
    expect(verify(delivery(), [VECTOR.secret.replace('whsec_', '')])).toBe(VECTOR.id);
  });

  test.each([
    [-300, true],
    [300, true],
    [-301, false],
    [301, false],
  ])(
    'If the clock differs from the timestamp of a delivery by %i s, this implementation and svix give the same result (valid: %s)',
    (offset, isValid) => {
      vi.setSystemTime((NOW + offset) * 1000);
      expect(verify(delivery()) !== undefined).toBe(isValid);
      expect(svixAccepts(delivery())).toBe(isValid);
    },
  );

  test('verifyWebhookSignature() returns the message id and the time of the delivery in milliseconds', () => {
    const { payload, headers } = delivery();
    expect(verifyWebhookSignature(payload, headers, SECRETS.map(decodeSigningSecret))).toEqual({
      id: VECTOR.id,
      sentAt: VECTOR.timestamp * 1_000,
    });
  });

  test('Several spaces between signatures count as one space', () => {
    const signature = [...Array<string>(15).fill('v1a,AAAA'), VECTOR.signature].join('   ');
    expect(verify(delivery({ signature }))).toBe(VECTOR.id);
  });

  test('A valid signature is accepted as the last of 16 signatures', () => {
    const signature = [...Array<string>(15).fill('v1a,AAAA'), VECTOR.signature].join(' ');
    expect(verify(delivery({ signature }))).toBe(VECTOR.id);
  });
});

/** Number of generated deliveries. It is small in `npm run mutation`, which repeats the test for each mutant. */
const GENERATED = process.env['MUTATION_RUN'] === undefined ? 10_000 : 200;

describe('Generated deliveries', () => {
  const Id = fc.stringMatching(/^[\w:-]{1,40}$/);
  const Payload = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 200 }),
    fc.string({ unit: 'binary', maxLength: 50 }),
    fc.json(),
  );
  const Offset = fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: -300, max: 300 }) },
    { weight: 1, arbitrary: fc.constantFrom(-301, -300, 300, 301) },
    { weight: 1, arbitrary: fc.integer({ min: -NOW + 1, max: NOW }) },
  );
  /**
   * Functions that turn a base64 signature into an entry of the header. The first function returns a valid entry and has three
   * quarters of the weight. Most other functions return an invalid entry.
   */
  const Spelling = fc.oneof(
    { weight: 3, arbitrary: fc.constant((signature: string) => `v1,${signature}`) },
    fc.constantFrom(
      (signature: string) => `v1a,${signature}`,
      (signature: string) => `v2,${signature}`,
      (signature: string) => `V1,${signature}`,
      (signature: string) => signature,
      (signature: string) => `v1,${signature},trailing text`,
      (signature: string) => `v1,,${signature}`,
      (signature: string) => `v1,${signature.slice(0, -1)}`,
      (signature: string) => `v1,${signature}=`,
      (signature: string) => `v1,${signature.slice(0, -2)}==`,
      (signature: string) => `v1,${signature.replace(/(.)=$/, (_end, last) => `${nextCharacter(last)}=`)}`,
      (signature: string) => `v1,${signature.replaceAll('+', '-').replaceAll('/', '_')}`,
      (signature: string) => `v1,${signature.slice(0, 20)}\t${signature.slice(20)}`,
      (signature: string) => `v1,${signature.slice(1)}é`,
      (signature: string) => `v1,${signature.toLowerCase()}`,
      () => 'v1',
      () => 'v1,',
      () => ',',
      () => '',
    ),
  );
  /** Changes an unused bit of the last base64 character. The signature then decodes to the same bytes. */
  const nextCharacter = (character: string) => String.fromCharCode(character.charCodeAt(0) + 1);
  const Entry = fc.record({
    secret: fc.constantFrom(...SECRETS, FOREIGN_SECRET),
    spell: Spelling,
    separator: fc.constantFrom(' ', ', ', '  ', ','),
  });
  /** Prefix of a header name. `both` means a header with each prefix. */
  const Prefix = fc.constantFrom('svix', 'webhook', 'both');
  const Generated = fc.record({
    id: Id,
    payload: Payload,
    offset: Offset,
    entries: fc.array(Entry, { minLength: 1, maxLength: 6 }),
    secrets: fc.subarray(SECRETS, { minLength: 1 }),
    names: fc.record({ id: Prefix, timestamp: Prefix, signature: Prefix }),
    change: fc.oneof(
      { weight: 6, arbitrary: fc.constant('none') },
      fc.constantFrom('id', 'timestamp', 'payload', 'removed header'),
    ),
  });

  test('This implementation and svix accept the same generated deliveries', () => {
    let accepted = 0;
    let rejected = 0;
    fc.assert(
      fc.property(Generated, ({ id, payload, offset, entries, secrets, names, change }) => {
        const timestamp = NOW + offset;
        const signature = entries
          .map(({ secret, spell, separator }) => spell(sign(secret, id, timestamp, payload)) + separator)
          .join('');
        const sent = {
          id: change === 'id' ? `${id}_` : id,
          timestamp: String(change === 'timestamp' ? timestamp + 1 : timestamp),
          signature,
        };
        const headers = new Headers();
        for (const part of ['id', 'timestamp', 'signature'] as const) {
          if (names[part] !== 'webhook') headers.set(`svix-${part}`, sent[part]);
          if (names[part] === 'webhook') headers.set(`webhook-${part}`, sent[part]);
          if (names[part] === 'both') headers.set(`webhook-${part}`, 'ignored');
        }
        if (change === 'removed header') headers.delete(`${names.id === 'webhook' ? 'webhook' : 'svix'}-id`);
        const received = { payload: change === 'payload' ? `${payload} ` : payload, headers };
        const isAccepted = svixAccepts(received, secrets);
        expect(verify(received, secrets) !== undefined).toBe(isAccepted);
        if (isAccepted) accepted += 1;
        else rejected += 1;
      }),
      { numRuns: GENERATED },
    );
    // More than a tenth of the deliveries is accepted and more than a tenth is rejected, so the comparison covers both results.
    expect(Math.min(accepted, rejected)).toBeGreaterThan(GENERATED / 10);
  });
});

describe('Deliberate differences from svix', () => {
  const oldTimestamp = NOW - 10_000;

  test.each([
    ['An id with a dot', { id: 'msg.1' }],
    ['An id with 256 characters', { id: 'm'.repeat(256) }],
    ['An id with a space', { id: 'msg 1' }],
    ['An id with a character outside of ASCII', { id: 'msgé' }],
    ['A timestamp with a leading zero', { timestamp: `0${NOW}` }],
    ['A timestamp with a sign', { timestamp: `+${NOW}` }],
    ['A timestamp with a fraction', { timestamp: `${NOW}.9` }],
    ['A timestamp that ends in letters', { timestamp: `${NOW}abc` }],
    ['A timestamp that ends in another number', { timestamp: `${NOW} 1` }],
  ])('%s is valid in svix and is rejected by this implementation', (_name, changes) => {
    const id = 'id' in changes ? changes.id : VECTOR.id;
    const signature = `v1,${sign(VECTOR.secret, id, NOW, VECTOR.payload)}`;
    const received = delivery({ ...changes, signature });
    expect(svixAccepts(received)).toBe(true);
    expect(verify(received)).toBeUndefined();
  });

  test('A delivery with 17 signatures is valid in svix and is rejected by this implementation', () => {
    const received = delivery({
      signature: [VECTOR.signature, ...Array<string>(16).fill('v1,AAAA')].join(' '),
    });
    expect(svixAccepts(received)).toBe(true);
    expect(verify(received)).toBeUndefined();
  });

  // The signed text is `id.timestamp.payload`. In this test, it is `msg_1.<old>.<now>.{…}`. If ids may contain dots, this text
  // has two readings: the id `msg_1`, the old timestamp and a payload that starts with a number, or the id `msg_1.<old>` and the
  // current timestamp.
  test('A replayed delivery with the old timestamp at the end of the id is valid in svix and is rejected by this implementation', () => {
    const signature = `v1,${sign(VECTOR.secret, 'msg_1', oldTimestamp, `${NOW}.${VECTOR.payload}`)}`;
    const received = delivery({ id: `msg_1.${oldTimestamp}`, signature });
    expect(svixAccepts(received)).toBe(true);
    expect(verify(received)).toBeUndefined();
  });
});

describe('Cost', () => {
  const wrong = `v1,${'A'.repeat(43)}=`;

  test.each([
    ['no id', { id: '' }],
    ['a malformed id', { id: 'msg.1' }],
    ['no timestamp', { timestamp: '' }],
    ['a malformed timestamp', { timestamp: `${NOW}abc` }],
    ['a timestamp with a leading zero', { timestamp: `0${NOW}` }],
    ['a timestamp with a fraction', { timestamp: `${NOW}.9` }],
    ['an old timestamp', { timestamp: String(NOW - 301) }],
    ['a future timestamp', { timestamp: String(NOW + 301) }],
    ['no signature', { signature: '' }],
    ['a signature of version v1a', { signature: VECTOR.signature.replace('v1', 'v1a') }],
    ['a signature without padding', { signature: VECTOR.signature.slice(0, -1) }],
    ['a signature that is too long', { signature: `v1,A${'A'.repeat(43)}=` }],
    ['a signature that is not base64', { signature: `v1,${'?'.repeat(44)}` }],
    ['17 signatures', { signature: Array<string>(17).fill(wrong).join(' ') }],
  ])('A delivery with %s is rejected without computing a hash', (_name, changes) => {
    expect(verify(delivery(changes))).toBeUndefined();
    expect(createHmac).not.toHaveBeenCalled();
  });

  test('A delivery with 16 wrong signatures costs one hash for each secret', () => {
    expect(verify(delivery({ signature: Array<string>(16).fill(wrong).join(' ') }))).toBeUndefined();
    expect(createHmac).toHaveBeenCalledTimes(SECRETS.length);
  });
});
