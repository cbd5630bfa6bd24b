import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, test, vi } from 'vitest';
import {
  environment,
  environmentSchema,
  InvalidEnvironmentError,
  parseEnvironment,
  setEnvironment,
} from '#lib/env';
import { BUILD_TIME_VALUES as complete } from '../harness/build';

/** Returns a webhook signing secret with the given number of bytes. */
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

/** Returns the error message of parseEnvironment(), or an empty string if the variables are valid. */
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
  test('The environment schema has exactly the variables that .env.example lists', () => {
    const listed = readFileSync('.env.example', 'utf8').match(/^[A-Z_]+(?==)/gm);
    expect(listed?.toSorted()).toEqual(Object.keys(environmentSchema.shape).toSorted());
  });

  test('parseEnvironment() applies defaults and splits lists at white space', () => {
    const environment = parseEnvironment({
      ...complete,
      IDP_WEBHOOK_SIGNING_SECRET: ` ${secretOf(24)} \n${secretOf(64)} `,
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

  test.each([
    ['1', 1],
    ['60', 60],
    ['999999', 999_999],
  ])('USER_ID_CACHE_TTL_SECONDS is parsed as a number of seconds: %s', (value, seconds) => {
    const environment = parseEnvironment({ ...complete, USER_ID_CACHE_TTL_SECONDS: value });
    expect(environment.USER_ID_CACHE_TTL_SECONDS).toBe(seconds);
  });

  test('FORGOTTEN_USERS_DAYS is parsed as a number of days, and the error for an invalid value contains the valid range', () => {
    expect(parseEnvironment({ ...complete, FORGOTTEN_USERS_DAYS: '999' }).FORGOTTEN_USERS_DAYS).toBe(999);
    expect(problemsOf({ FORGOTTEN_USERS_DAYS: '1000' })).toContain(
      'FORGOTTEN_USERS_DAYS must be a whole number of days from 0 to 999',
    );
  });

  test('parseEnvironment() decodes the address of the Frontend API from IDP_PUBLISHABLE_KEY', () => {
    const key = `pk_test_${Buffer.from('Clerk-1.app.example$').toString('base64')}`;
    expect(parseEnvironment({ ...complete, IDP_PUBLISHABLE_KEY: key }).IDP_PUBLISHABLE_KEY).toEqual({
      key,
      frontendApi: 'https://Clerk-1.app.example',
    });
  });

  test('A live secret key and a live publishable key are valid together', () => {
    const keys = {
      IDP_SECRET_KEY: 'sk_live_0123456789',
      IDP_PUBLISHABLE_KEY: `pk_live_${Buffer.from('clerk.example$').toString('base64')}`,
    };
    expect(problemsOf(keys)).toBe('');
  });

  test.each([
    ['https://a.example/', 'must contain origins without a slash at the end'],
    ['https://a.example,https://b.example', 'must be separated by spaces, not by commas'],
    ['https://App.example', 'must contain origins in lower case'],
    ['https://a.example:443', 'must contain origins without the default port'],
    ['capacitor://localhost/path', 'must contain origins (https://app.example.com), separated by spaces'],
  ])('The message about the authorized party %s names the mistake', (origin, problem) => {
    expect(problemsOf({ IDP_AUTHORIZED_PARTIES: origin })).toContain(`IDP_AUTHORIZED_PARTIES ${problem}`);
  });

  test.each([
    'chrome-extension://abcdefghijklmnopabcdefghijklmnop',
    'moz-extension://0b7f4d1c-2f5e-4d6f-9a4e-0c7f2a1b3c4d',
    'capacitor://localhost',
    'tauri://localhost',
    'my-app://renderer',
    'http://localhost:3000',
  ])(
    'The origin of a browser extension, a shell or a local frontend is an authorized party: %s',
    (origin) => {
      expect(problemsOf({ IDP_AUTHORIZED_PARTIES: origin })).toBe('');
    },
  );

  test.each([
    ['postgresql:///app', 'must be a postgresql:// URL with a host'],
    ['postgresql://u:p@host/app?schema=app', 'must not name a schema'],
  ])('DATABASE_URL rejects %s with the reason', (DATABASE_URL, problem) => {
    expect(problemsOf({ DATABASE_URL })).toContain(`DATABASE_URL ${problem}`);
  });

  test.each([
    'postgres://u:p@host/db',
    'postgresql://host/db',
    'postgresql://host/db?schema=public',
    'postgresql://user@/db?host=/cloudsql/instance',
  ])('DATABASE_URL accepts %s', (DATABASE_URL) => {
    expect(problemsOf({ DATABASE_URL })).toBe('');
  });

  test.each(['http://127.0.0.1:1', 'http://localhost:1/', 'http://[::1]:1'])(
    'The variables of the local stack accept the URL %s',
    (url) => {
      expect(problemsOf({ CLERK_API_URL: url, CLERK_FAPI_URL: url, IDP_CONSOLE_URL: url })).toBe('');
    },
  );

  test.each([
    ['DATABASE_URL', '  ', 'DATABASE_URL is missing'],
    [
      'IDP_SECRET_KEY',
      'sk_live_0123456789abcdef',
      'IDP_SECRET_KEY must belong to the same instance as IDP_PUBLISHABLE_KEY: one is a test key and the other a live key',
    ],
    ['IDP_SECRET_KEY', 'pk_test_0123456789', 'IDP_SECRET_KEY must be a secret key (sk_test_… or sk_live_…)'],
    [
      'IDP_PUBLISHABLE_KEY',
      'pk_test_',
      'IDP_PUBLISHABLE_KEY must be a publishable key (pk_test_… or pk_live_…)',
    ],
    [
      'IDP_WEBHOOK_SIGNING_SECRET',
      'x',
      'IDP_WEBHOOK_SIGNING_SECRET must contain signing secrets (whsec_…) of 24 to 64 bytes, separated by spaces',
    ],
    [
      'IDP_AUTHORIZED_PARTIES',
      'x',
      'IDP_AUTHORIZED_PARTIES must contain origins (https://app.example.com), separated by spaces',
    ],
    ['DATABASE_URL', 'x', 'DATABASE_URL must be a postgresql:// URL'],
    ['KV_REST_API_URL', 'x', 'KV_REST_API_URL must be an https:// or http:// URL'],
    [
      'KV_REST_API_TOKEN',
      'a b',
      'KV_REST_API_TOKEN must contain only printable ASCII characters without spaces',
    ],
    [
      'USER_ID_CACHE_TTL_SECONDS',
      'x',
      'USER_ID_CACHE_TTL_SECONDS must be a whole number of seconds from 1 to 999999',
    ],
    [
      'CLERK_API_URL',
      'x',
      'CLERK_API_URL must be an http:// URL with a port on this machine: only the local stack sets this variable',
    ],
  ])('The error for %s=%j states what is wrong with the value', (name, value, problem) => {
    expect(problemsOf({ [name]: value })).toBe(`Invalid environment variables:\n  - ${problem}`);
  });

  test('A secret key is invalid if other text precedes it', () => {
    expect(problemsOf({ IDP_SECRET_KEY: 'xsk_test_0123456789' })).toContain('must be a secret key');
  });

  test('environment() parses the variables once. After setEnvironment(undefined), it parses them again', () => {
    for (const [name, value] of Object.entries(complete)) vi.stubEnv(name, value);
    setEnvironment(undefined);
    const first = environment();
    expect(environment()).toBe(first);
    setEnvironment(undefined);
    expect(environment()).not.toBe(first);
    setEnvironment(undefined);
    vi.unstubAllEnvs();
  });

  test('InvalidEnvironmentError has a name and lists its problems', () => {
    expect(new InvalidEnvironmentError(['A is missing', 'B is missing'])).toMatchObject({
      name: 'InvalidEnvironmentError',
      problems: ['A is missing', 'B is missing'],
      message: 'Invalid environment variables:\n  - A is missing\n  - B is missing',
    });
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
      ['a PEM in double quotes with \\n for its line breaks', JSON.stringify(key)],
      ['a PEM with spaces for its line breaks', key.trim().replaceAll('\n', ' ')],
      ['a PEM without line breaks', key.replaceAll('\n', '')],
      ['a PEM without its header and footer', body],
      ['a PEM without its header and footer, with line breaks', body.replaceAll(/.{64}/g, '$&\n')],
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
        'an RSA key of 4,096 bits',
        'is not an RSA-2048 key',
        pem(generateKeyPairSync('rsa', { modulusLength: 4096 })),
      ],
      ['an Ed25519 key', 'is not an RSA-2048 key', ed25519Key()],
      [
        'an RSA key with the exponent 3',
        'is not an RSA-2048 key',
        pem(generateKeyPairSync('rsa', { modulusLength: 2048, publicExponent: 3 })),
      ],
      [
        'an RSA-PSS key',
        'is not an RSA-2048 key',
        pem(generateKeyPairSync('rsa-pss', { modulusLength: 2048, publicExponent: 65537 })),
      ],
      ['a PEM after other text', 'is not a public key in PEM format', `IDP_JWT_KEY=${key}`],
      ['a PEM before other text', 'is not a public key in PEM format', `${key}#end`],
      ['a PEM between a double quote and a single quote', 'is not a public key in PEM format', `"${key}'`],
      [
        'a PEM with a quote before its body',
        'is not a public key in PEM format',
        `-----BEGIN PUBLIC KEY-----"${body}-----END PUBLIC KEY-----"`,
      ],
      [
        'a PEM with a quote after its body',
        'is not a public key in PEM format',
        `"-----BEGIN PUBLIC KEY-----${body}"-----END PUBLIC KEY-----`,
      ],
      [
        'a damaged private key',
        'is a private key',
        '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----',
      ],
      [
        'a certificate signing request',
        'is a certificate', // A signing request gets the same message as a certificate.
        '-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----',
      ],
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
      'If IDP_JWT_KEY is %s, the error states how to set the variable, but does not contain the value',
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
    ['IDP_PUBLISHABLE_KEY', `pk_test_${Buffer.from('clerk.example$ ').toString('base64')}`],
    ['IDP_PUBLISHABLE_KEY', `pk_test_${Buffer.from('/clerk.example$').toString('base64')}`],
    ['IDP_PUBLISHABLE_KEY', `xpk_test_${Buffer.from('clerk.example$').toString('base64')}`],
    ['IDP_PUBLISHABLE_KEY', `pk_test_${Buffer.from('clerk.example$').toString('base64')}!`],
    ['IDP_SECRET_KEY', 'sk_test_0123456789abcdef x'],
    ['IDP_WEBHOOK_SIGNING_SECRET', `${secretOf(32)}!`],
    ['IDP_WEBHOOK_SIGNING_SECRET', `!${secretOf(32)}`],
    ['IDP_WEBHOOK_SIGNING_SECRET', `${secretOf(33)}!!!!`],
    ['IDP_WEBHOOK_SIGNING_SECRET', secretOf(33).replace('whsec_', 'whsec_!!!!')],
    ['IDP_WEBHOOK_SIGNING_SECRET', secretOf(33).replace('whsec_', 'AAAAwhsec_')],
    ['IDP_WEBHOOK_SIGNING_SECRET', secretOf(32).slice(0, -1)],
    ['DATABASE_URL', 'xpostgresql://u:p@localhost/app'],
    ['DATABASE_URL', 'not a URL'],
    ['KV_REST_API_URL', 'xhttps://store.example'],
    ['KV_REST_API_TOKEN', 'token\u00e9'],
    ['USER_ID_CACHE_TTL_SECONDS', '1000000'],
    ['USER_ID_CACHE_TTL_SECONDS', '60s'],
    ['USER_ID_CACHE_TTL_SECONDS', '0'],
    ['CLERK_FAPI_URL', 'http://127.0.0.1'],
    ['CLERK_FAPI_URL', 'https://127.0.0.1:4000'],
    ['CLERK_FAPI_URL', 'http://127.0.0.1.example:4000'],
    ['CLERK_FAPI_URL', 'http://x.localhost:4000'],
    ['CLERK_FAPI_URL', 'not a URL'],
    ['USER_ID_CACHE_TTL_SECONDS', '1.5'],
    ['USER_ID_CACHE_TTL_SECONDS', 'ten'],
    ['FORGOTTEN_USERS_DAYS', '-1'],
    ['FORGOTTEN_USERS_DAYS', '1000'],
    ['CLERK_API_URL', 'https://api.clerk.com'],
    ['CLERK_FAPI_URL', 'http://example.com'],
    ['IDP_CONSOLE_URL', 'http://example.com:3900'],
    ['IDP_CONSOLE_URL', 'javascript:alert(1)'],
  ])(
    'The error for an invalid value of %s contains the name of the variable, but not the value',
    (name, value) => {
      const problems = problemsOf({ [name]: value });
      expect(problems).toMatch(new RegExp(`^  - ${name} `, 'm'));
      expect(problems).not.toContain(value);
      expect(problems.split('\n')).toHaveLength(2);
    },
  );
});
