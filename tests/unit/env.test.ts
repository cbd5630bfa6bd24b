import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { environmentSchema, InvalidEnvironmentError, parseEnvironment } from '#lib/env';
import { BUILD_TIME_VALUES as complete } from '../harness/build';

const secretOf = (bytes: number) => `whsec_${Buffer.alloc(bytes, 7).toString('base64')}`;
const pem = ({ publicKey }: { publicKey: KeyObject }) =>
  publicKey.export({ type: 'spki', format: 'pem' }).toString();
const rsaKey = () => pem(generateKeyPairSync('rsa', { modulusLength: 2048 }));
const ed25519Key = () => pem(generateKeyPairSync('ed25519'));

const problemsOf = (overrides: Record<string, string | undefined>) => {
  try {
    parseEnvironment({ ...complete, ...overrides });
    return '';
  } catch (error) {
    if (error instanceof InvalidEnvironmentError) return error.message;
    throw error;
  }
};

describe('the environment', () => {
  test('is the one that .env.example lists', () => {
    const listed = readFileSync('.env.example', 'utf8').match(/^[A-Z_]+(?==)/gm);
    expect(listed?.toSorted()).toEqual(Object.keys(environmentSchema.shape).toSorted());
  });

  test('has defaults, and lists split at white space', () => {
    const environment = parseEnvironment({
      ...complete,
      IDP_WEBHOOK_SIGNING_SECRET: ` ${secretOf(24)}\n${secretOf(64)} `,
      IDP_AUTHORIZED_PARTIES: 'https://a.example http://localhost:3000',
    });
    expect(environment).toMatchObject({
      IDP_WEBHOOK_SIGNING_SECRET: [secretOf(24), secretOf(64)],
      IDP_AUTHORIZED_PARTIES: ['https://a.example', 'http://localhost:3000'],
      USER_ID_CACHE_TTL_SECONDS: 600,
    });
    expect(environment.IDP_JWT_KEY).toBeUndefined();
  });

  test('takes a PEM key with escaped line breaks, as dashboards give it', () => {
    const key = rsaKey();
    const escaped = key.trim().replaceAll('\n', '\\n');
    expect(parseEnvironment({ ...complete, IDP_JWT_KEY: escaped }).IDP_JWT_KEY).toBe(key);
  });

  test('that is empty is refused with one list of every required name', () => {
    const empty = () => parseEnvironment({ IDP_SECRET_KEY: '', DATABASE_URL: '  ' });
    expect(empty).toThrow(InvalidEnvironmentError);
    for (const name of Object.keys(complete)) expect(empty).toThrow(`${name} is missing`);
  });

  test('brings the key into the one form that the SDK reads', () => {
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const pkcs1 = publicKey.export({ type: 'pkcs1', format: 'pem' }).toString();
    expect(parseEnvironment({ ...complete, IDP_JWT_KEY: pkcs1 }).IDP_JWT_KEY).toBe(pem({ publicKey }));
  });

  test.each([
    ['IDP_SECRET_KEY', 'pk_test_0123456789abcdef'],
    ['IDP_SECRET_KEY', 'sk_test_short'],
    ['IDP_SECRET_KEY', 'sk_live_0123456789abcdef'],
    ['IDP_PUBLISHABLE_KEY', 'pk_test_???'],
    ['IDP_PUBLISHABLE_KEY', `pk_test_${Buffer.from('no-dollar.example').toString('base64')}`],
    ['IDP_WEBHOOK_SIGNING_SECRET', secretOf(23)],
    ['IDP_WEBHOOK_SIGNING_SECRET', secretOf(65)],
    ['IDP_WEBHOOK_SIGNING_SECRET', `${secretOf(32)} ${secretOf(8)}`],
    ['IDP_WEBHOOK_SIGNING_SECRET', 'whsec_AAAA'],
    ['IDP_WEBHOOK_SIGNING_SECRET', 'whsec_not*base64*at*all*whatever**'],
    ['IDP_WEBHOOK_SIGNING_SECRET', ',,,'],
    ['IDP_SECRET_KEY', 'sk_test_0123456789☃'],
    ['IDP_AUTHORIZED_PARTIES', ',,,'],
    ['IDP_AUTHORIZED_PARTIES', 'https://a.example,https://b.example'],
    ['DATABASE_URL', 'postgres://'],
    ['KV_REST_API_TOKEN', 'a b'],
    ['IDP_JWT_KEY', 'not a key'],
    ['IDP_JWT_KEY', pem(generateKeyPairSync('rsa', { modulusLength: 4096 }))],
    [
      'IDP_JWT_KEY',
      generateKeyPairSync('rsa', { modulusLength: 2048 })
        .privateKey.export({ type: 'pkcs8', format: 'pem' })
        .toString(),
    ],
    ['IDP_JWT_KEY', ed25519Key()],
    ['IDP_AUTHORIZED_PARTIES', 'https://a.example/path'],
    ['DATABASE_URL', 'mysql://u:p@localhost/app'],
    ['KV_REST_API_URL', 'redis://localhost'],
    ['USER_ID_CACHE_TTL_SECONDS', '0'],
    ['USER_ID_CACHE_TTL_SECONDS', '1.5'],
    ['USER_ID_CACHE_TTL_SECONDS', 'ten'],
    ['CLERK_API_URL', 'https://api.clerk.com'],
    ['CLERK_FAPI_URL', 'http://example.com'],
    ['IDP_CONSOLE_URL', 'http://example.com:3900'],
    ['IDP_CONSOLE_URL', 'javascript:alert(1)'],
  ])('with a malformed %s is refused by name, never by value', (name, value) => {
    const problems = problemsOf({ [name]: value });
    expect(problems).toMatch(new RegExp(`^  - ${name} `, 'm'));
    expect(problems).not.toContain(value);
    expect(problems.split('\n')).toHaveLength(2);
  });
});
