import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { environmentSchema, InvalidEnvironmentError, parseEnvironment } from '#lib/env';
import { BUILD_TIME_VALUES as complete } from '../harness/build';

const secretOf = (bytes: number) => `whsec_${Buffer.alloc(bytes, 7).toString('base64')}`;
const pem = ({ publicKey }: { publicKey: KeyObject }) =>
  publicKey.export({ type: 'spki', format: 'pem' }).toString();
const ed25519Key = () => pem(generateKeyPairSync('ed25519'));

/** Test certificate. Its private key was discarded. */
const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBhjCCASugAwIBAgIUPAr75Ed8o6GAN2lXlfvwk8ePie4wCgYIKoZIzj0EAwIw
GDEWMBQGA1UEAwwNY2xlcmsuZXhhbXBsZTAeFw0yNjExMjIwMDE1MTZaFw0zNjEx
MTkwMDE1MTZaMBgxFjAUBgNVBAMMDWNsZXJrLmV4YW1wbGUwWTATBgcqhkjOPQIB
BggqhkjOPQMBBwNCAARZ5i4kd7s/ICg6pSy6Eh5OaeXE8RUQFtwaBctUL44J/QCK
poXPhkU2jxOpraFza94DRVzfSLPlLvRB4hDjWKlmo1MwUTAdBgNVHQ4EFgQUwiec
ptYTZSUG2LusQdXD7cQF+7gwHwYDVR0jBBgwFoAUwiecptYTZSUG2LusQdXD7cQF
+7gwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNJADBGAiEA3mi99uetRJ20
aHmVsdZjdGzQqD4X3PdAd+yC10t1xmQCIQDr6mI/7Yo65PK2f8dR4ySGW6A5TT3Z
GE7OP1AZmOye3A==
-----END CERTIFICATE-----
`;

const problemsOf = (overrides: Record<string, string | undefined>) => {
  try {
    parseEnvironment({ ...complete, ...overrides });
    return '';
  } catch (error) {
    if (error instanceof InvalidEnvironmentError) return error.message;
    throw error;
  }
};

describe('The environment', () => {
  test('The environment schema has the variables that .env.example lists', () => {
    const listed = readFileSync('.env.example', 'utf8').match(/^[A-Z_]+(?==)/gm);
    expect(listed?.toSorted()).toEqual(Object.keys(environmentSchema.shape).toSorted());
  });

  test('parseEnvironment() applies defaults and splits lists at white space', () => {
    const environment = parseEnvironment({
      ...complete,
      IDP_WEBHOOK_SIGNING_SECRET: ` ${secretOf(24)}\n${secretOf(64)} `,
      IDP_AUTHORIZED_PARTIES: 'https://a.example http://localhost:3000',
    });
    expect(environment).toMatchObject({
      IDP_WEBHOOK_SIGNING_SECRET: [secretOf(24), secretOf(64)],
      IDP_AUTHORIZED_PARTIES: ['https://a.example', 'http://localhost:3000'],
      USER_ID_CACHE_TTL_SECONDS: 600,
      FORGOTTEN_USERS_DAYS: 30,
    });
    expect(environment.IDP_JWT_KEY).toBeUndefined();
  });

  test('parseEnvironment() throws one error that lists every missing variable', () => {
    const empty = () => parseEnvironment({ IDP_SECRET_KEY: '', DATABASE_URL: '  ' });
    expect(empty).toThrow(InvalidEnvironmentError);
    for (const name of Object.keys(complete)) expect(empty).toThrow(`${name} is missing`);
  });

  describe('IDP_JWT_KEY', () => {
    const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const key = pem({ publicKey });
    const body = key.replaceAll(/-----.+-----|\n/g, '');
    const pkcs1 = publicKey.export({ type: 'pkcs1', format: 'pem' }).toString();
    const privateDer = (type: 'pkcs8' | 'pkcs1') => privateKey.export({ type, format: 'der' });

    test.each([
      ['a PEM', key],
      ['a PEM with \\n for its line breaks', key.trim().replaceAll('\n', '\\n')],
      ['a PEM with \\r\\n for its line breaks', key.replaceAll('\n', '\\r\\n')],
      ['a PEM with Windows line breaks', key.replaceAll('\n', '\r\n')],
      ['a PEM in double quotes', `"${key}"`],
      ['a PEM in single quotes', `'${key.trim()}'`],
      ['a PEM in quotes with \\n', JSON.stringify(key)],
      ['a PEM with spaces for its line breaks', key.trim().replaceAll('\n', ' ')],
      ['a PEM without line breaks', key.replaceAll('\n', '')],
      ['a PEM without its header and footer', body],
      ['a PEM without its header and footer, in lines', body.replaceAll(/.{64}/g, '$&\n')],
      ['a PEM that is encoded in base64 again', Buffer.from(key).toString('base64')],
      ['a key in PKCS #1 format', pkcs1],
    ])('parseEnvironment() converts IDP_JWT_KEY to the format that the SDK reads: %s', (_form, value) => {
      expect(parseEnvironment({ ...complete, IDP_JWT_KEY: value }).IDP_JWT_KEY).toBe(key);
    });

    test.each([
      ['a private key', 'is a private key', privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()],
      [
        'an RSA private key',
        'is a private key',
        privateKey.export({ type: 'pkcs1', format: 'pem' }).toString(),
      ],
      [
        'an encrypted private key',
        'is a private key',
        privateKey
          .export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' })
          .toString(),
      ],
      [
        'a private key without its header and footer',
        'is a private key',
        privateDer('pkcs8').toString('base64'),
      ],
      [
        'an RSA private key without its header and footer',
        'is a private key',
        privateDer('pkcs1').toString('base64'),
      ],
      [
        'a private key with a public-key header',
        'is a private key',
        `-----BEGIN RSA PUBLIC KEY-----\n${privateDer('pkcs1').toString('base64')}\n-----END RSA PUBLIC KEY-----`,
      ],
      ['a certificate', 'is a certificate', CERTIFICATE],
      [
        'a certificate without its header and footer',
        'is a certificate',
        CERTIFICATE.replaceAll(/-----.+-----|\n/g, ''),
      ],
      [
        'a key that is too long',
        'is not an RSA-2048 key',
        pem(generateKeyPairSync('rsa', { modulusLength: 4096 })),
      ],
      ['a key of another type', 'is not an RSA-2048 key', ed25519Key()],
      ['half a key', 'is not a public key in PEM format', key.slice(0, 200)],
      [
        'the URL of a JSON Web Key Set',
        'is not a public key in PEM format',
        'https://clerk.example/.well-known/jwks.json',
      ],
      [
        'a JSON Web Key Set',
        'is not a public key in PEM format',
        JSON.stringify({ keys: [publicKey.export({ format: 'jwk' })] }),
      ],
    ])(
      'parseEnvironment() rejects %s as IDP_JWT_KEY with instructions and without the value',
      (_form, words, value) => {
        const problems = problemsOf({ IDP_JWT_KEY: value });
        expect(problems).toContain(`  - IDP_JWT_KEY ${words}`);
        expect(problems).toContain(
          'set the public key of the instance, from -----BEGIN PUBLIC KEY----- to -----END PUBLIC KEY-----',
        );
        expect(problems.split('\n')).toHaveLength(2);
        const longWords = value.match(/[\w+/]{20,}/g) ?? [];
        expect(longWords.filter((word) => problems.includes(word))).toEqual([]);
      },
    );
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
    ['IDP_AUTHORIZED_PARTIES', 'https://a.example/path'],
    ['DATABASE_URL', 'mysql://u:p@localhost/app'],
    ['KV_REST_API_URL', 'redis://localhost'],
    ['USER_ID_CACHE_TTL_SECONDS', '0'],
    ['USER_ID_CACHE_TTL_SECONDS', '1.5'],
    ['USER_ID_CACHE_TTL_SECONDS', 'ten'],
    ['FORGOTTEN_USERS_DAYS', '-1'],
    ['FORGOTTEN_USERS_DAYS', '1000'],
    ['CLERK_API_URL', 'https://api.clerk.com'],
    ['CLERK_FAPI_URL', 'http://example.com'],
    ['IDP_CONSOLE_URL', 'http://example.com:3900'],
    ['IDP_CONSOLE_URL', 'javascript:alert(1)'],
  ])('The error for a malformed %s contains the name but not the value', (name, value) => {
    const problems = problemsOf({ [name]: value });
    expect(problems).toMatch(new RegExp(`^  - ${name} `, 'm'));
    expect(problems).not.toContain(value);
    expect(problems.split('\n')).toHaveLength(2);
  });
});
