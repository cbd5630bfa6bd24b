import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import tls from 'node:tls';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { databaseOptions } from '#lib/base/database-url';
import { parseEnvironmentSubset, setEnvironment, variables } from '#lib/base/env';
import { InvalidEnvironmentError } from '#lib/base/errors';
import { variables as clerkVariables } from '#lib/clerk/variables';
import { checkVariables } from '#lib/doctor/variables';
import { allVariables } from '#lib/variables';
import { BUILD_TIME_VALUES as complete } from '../harness/build';
import { SIGNING_KEY_PEM } from '../harness/dependencies/signing-key';

/** Returns a webhook signing secret with the given number of bytes. */
const secretOf = (bytes: number) => `whsec_${Buffer.alloc(bytes, 7).toString('base64')}`;
const pem = ({ publicKey }: { publicKey: KeyObject }) =>
  publicKey.export({ type: 'spki', format: 'pem' }).toString();

const parse = (source: Record<string, string | undefined>) => parseEnvironmentSubset(allVariables, source);
/** Returns the error message, or an empty string if the variables are valid. */
const problemsOf = (overrides: Record<string, string | undefined>) => {
  try {
    parse({ ...complete, ...overrides });
    return '';
  } catch (error) {
    if (error instanceof InvalidEnvironmentError) return error.message;
    throw error;
  }
};

const publishableKey = (text: string, prefix = 'pk_test_') =>
  `${prefix}${Buffer.from(text).toString('base64')}`;

const PARTIES = ['https://a.example', 'http://localhost:3000', 'capacitor://localhost', 'my-app://renderer'];
test.each<[name: string, value: string | undefined, parsed: unknown]>([
  ['IDP_WEBHOOK_SIGNING_SECRET', ` ${secretOf(24)} \n${secretOf(64)} `, [secretOf(24), secretOf(64)]],
  ['IDP_AUTHORIZED_PARTIES', PARTIES.join(' '), PARTIES],
  [
    'IDP_PUBLISHABLE_KEY',
    publishableKey('Clerk-1.app.example$'),
    { key: publishableKey('Clerk-1.app.example$'), frontendApi: 'https://Clerk-1.app.example' },
  ],
  ['IDP_JWT_KEY', undefined, undefined],
  ['PUBLIC_ORIGIN', undefined, undefined],
  ['PUBLIC_ORIGIN', 'http://localhost:3000', 'http://localhost:3000'],
  ['PUBLIC_ORIGIN', 'https://API.example:443/', 'https://api.example'],
  ['REGISTER_OWN_ID_ONLY', '1', '1'],
  ['USER_ID_CACHE_TTL_SECONDS', undefined, 600],
  ['USER_ID_CACHE_TTL_SECONDS', '999999', 999_999],
  ['FORGOTTEN_USERS_DAYS', undefined, 30],
  ['KEEP_ALIVE_SECONDS', '620', '620'],
  ['FORGOTTEN_USERS_DAYS', '0', 0],
  ...[
    'postgres://u:p@host/db',
    'postgresql://host/db',
    'postgresql://host/db?schema=public',
    'postgresql://host/db?sslcert=package.json',
    'postgresql://user@/db?host=/cloudsql/instance',
  ].map((url): [string, string, string] => ['DATABASE_URL', url, url]),
  ...['http://127.0.0.1:1', 'http://localhost:1/', 'http://[::1]:1'].map((url): [string, string, string] => [
    'CLERK_API_URL',
    url,
    url,
  ]),
])('The variable %s may have the value %j', (name, value, parsed) => {
  expect(Reflect.get(parse({ ...complete, [name]: value }), name)).toEqual(parsed);
});

test('A live secret key and a live publishable key are valid together', () => {
  const keys = {
    IDP_SECRET_KEY: 'sk_live_0123456789',
    IDP_PUBLISHABLE_KEY: publishableKey('clerk.example$', 'pk_live_'),
  };
  expect(problemsOf(keys)).toBe('');
});

const LOCAL = 'must be an http:// URL with a port on this machine: only the local stack sets this variable';
const INVALID: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  IDP_SECRET_KEY: {
    'must be a secret key (sk_test_… or sk_live_…)': [
      'pk_test_0123456789abcdef',
      'sk_test_short',
      'sk_test_0123456789☃',
      'sk_test_0123456789abcdef x',
    ],
    'must belong to the same instance as IDP_PUBLISHABLE_KEY: one is a test key and the other a live key': [
      'sk_live_0123456789abcdef',
    ],
  },
  IDP_PUBLISHABLE_KEY: {
    'must be a publishable key (pk_test_… or pk_live_…)': [
      'pk_test_',
      `${publishableKey('clerk.example$')}!`,
      ...['no-dollar.example', 'clerk.example$ ', '/clerk.example$'].map((text) => publishableKey(text)),
      publishableKey('clerk.example$', 'xpk_test_'),
    ],
  },
  IDP_WEBHOOK_SIGNING_SECRET: {
    'must contain signing secrets (whsec_…) of 24 to 64 bytes, separated by spaces': [
      ...[secretOf(23), secretOf(65), ',,,', secretOf(32).slice(0, -1)],
      ...[`!${secretOf(32)}`, `${secretOf(33)}!!!!`],
      ...['whsec_!!!!', 'AAAAwhsec_'].map((prefix) => secretOf(33).replace('whsec_', prefix)),
    ],
  },
  VERDICT_SIGNING_KEY: { 'must have at least 32 printable ASCII characters': ['x'.repeat(31)] },
  REGISTER_OWN_ID_ONLY: { 'must be 1 or unset': ['0', 'true', ' 1'] },
  IDP_AUTHORIZED_PARTIES: {
    'must contain origins (https://app.example.com), separated by spaces': [
      'x',
      'https://a.example/path',
      'capacitor://localhost/path',
    ],
    'must be separated by spaces, not by commas': ['https://a.example,https://b.example'],
    'must list each origin, without a wildcard': ['https://*.example.com', 'chrome-extension://*'],
    'must contain origins without a slash at the end': ['https://a.example/'],
    'must contain origins in lower case': ['https://App.example'],
    'must contain origins without the default port': ['https://a.example:443'],
  },
  PUBLIC_ORIGIN: {
    'must be an origin, such as https://app.example.com': [
      ...['//api.example', 'https://u:p@api.example', 'https://api.example/mcp', 'https://api.example/#'],
      ...['https://a.example https://b.example', 'https://a"b.example', 'capacitor://localhost'],
    ],
  },
  DATABASE_URL: {
    'is missing': ['  '],
    'must be a postgresql:// URL': ['x', 'mysql://u:p@localhost/app', 'xpostgresql://u:p@localhost/app'],
    'must be a postgresql:// URL with a host': ['postgresql:///app', 'postgres://'],
    'must not name a schema, because the tables of the service are in the schema public': [
      'postgresql://u:p@host/app?schema=app',
    ],
    'must name a file that exists in its parameter sslrootcert': [
      'postgresql://h/db?sslrootcert=missing.pem',
    ],
    'must name a file that exists in its parameter sslkey': ['postgresql://h/db?sslkey=system'],
    'must not have the parameter sslcert with sslrootcert=system': [
      'postgresql://h/db?sslrootcert=system&sslcert=package.json',
    ],
  },
  KV_REST_API_URL: {
    'must be an https:// or http:// URL': ['x', 'redis://localhost', 'xhttps://store.example'],
  },
  KV_REST_API_TOKEN: {
    'must contain only printable ASCII characters without spaces': ['a b', 'token\u00e9'],
  },
  USER_ID_CACHE_TTL_SECONDS: {
    'must be a whole number of seconds from 1 to 999999': ['1000000', '60s', '0', '1.5'],
  },
  FORGOTTEN_USERS_DAYS: { 'must be a whole number of days from 0 to 999': ['-1', '1000'] },
  CLERK_API_URL: { [LOCAL]: ['x', 'https://127.0.0.1:4000'] },
  CLERK_FAPI_URL: {
    [LOCAL]: ['http://127.0.0.1', 'http://127.0.0.1.example:4000', 'http://x.localhost:4000'],
  },
  IDP_CONSOLE_URL: { [LOCAL]: ['http://example.com:3900'] },
};
test.each(
  Object.entries(INVALID).flatMap(([name, problems]) =>
    Object.entries(problems).flatMap(([problem, values]) =>
      values.map((value) => ({ name, value, problem })),
    ),
  ),
)('For $name=$value, the error states only what is wrong with the value', ({ name, value, problem }) => {
  expect(problemsOf({ [name]: value })).toBe(`Invalid environment variables:\n  - ${name} ${problem}`);
});

test('One error lists every missing variable', () => {
  const problems = Object.keys(complete).map((name) => `${name} is missing`);
  expect(() => parse({ IDP_SECRET_KEY: '', DATABASE_URL: '  ' })).toThrow(
    expect.objectContaining({
      name: 'InvalidEnvironmentError',
      problems,
      message: `Invalid environment variables:\n  - ${problems.join('\n  - ')}`,
    }),
  );
});

const privateKey = createPrivateKey(SIGNING_KEY_PEM);
const publicKey = createPublicKey(privateKey);
const key = pem({ publicKey });
const body = key.replaceAll(/-----.+-----|\n/g, '');
const certificate = tls.rootCertificates[0]?.replaceAll(/-----.+-----/g, '') ?? '';
const privateDer = (type: 'pkcs8' | 'pkcs1') => privateKey.export({ type, format: 'der' }).toString('base64');

test.each([
  ['a PEM', key],
  ['a PEM with \\r\\n for its line breaks', key.replaceAll('\n', '\\r\\n')],
  ['a PEM in single quotes', `'${key.trim()}'`],
  ['a PEM in double quotes with \\n for its line breaks', JSON.stringify(key)],
  ['a PEM with spaces for its line breaks', key.trim().replaceAll('\n', ' ')],
  ['a PEM without its header and footer', body],
  ['a PEM that is encoded in base64 again', Buffer.from(key).toString('base64')],
  ['a key in PKCS #1 format', publicKey.export({ type: 'pkcs1', format: 'pem' }).toString()],
])('IDP_JWT_KEY may have each form in which operators store it: %s', (_form, value) => {
  expect(parse({ ...complete, IDP_JWT_KEY: value })).toMatchObject({ IDP_JWT_KEY: key });
});

const ENCRYPTED = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' } as const;
const NOT_PEM = 'is not a public key in PEM format';
const NOT_RSA_2048 = 'is not an RSA-2048 key with the public exponent 65537';
const PRIVATE = 'is a private key and must not be stored here';
test.each([
  ['an encrypted private key', PRIVATE, privateKey.export(ENCRYPTED).toString()],
  ['a private key without its header and footer', PRIVATE, privateDer('pkcs8')],
  ['an RSA private key without its header and footer', PRIVATE, privateDer('pkcs1')],
  ['a certificate without its header and footer', 'is a certificate', certificate],
  // A signing request gets the same message as a certificate.
  ['a certificate signing request', 'is a certificate', '-----BEGIN CERTIFICATE REQUEST-----'],
  ['an RSA key of 1,024 bits', NOT_RSA_2048, pem(generateKeyPairSync('rsa', { modulusLength: 1024 }))],
  [
    'an RSA-PSS key',
    NOT_RSA_2048,
    pem(generateKeyPairSync('rsa-pss', { modulusLength: 2048, publicExponent: 65537 })),
  ],
  ['a PEM after other text', NOT_PEM, `IDP_JWT_KEY=${key}`],
  ['a PEM between a double quote and a single quote', NOT_PEM, `"${key}'`],
  ['the URL of a JSON Web Key Set', NOT_PEM, 'https://clerk.example/.well-known/jwks.json'],
])(
  'If IDP_JWT_KEY is %s, the error states only what is wrong and how to set the variable',
  (_form, problem, value) => {
    const remedy =
      'set the public key of the instance, from -----BEGIN PUBLIC KEY----- to -----END PUBLIC KEY-----';
    expect(problemsOf({ IDP_JWT_KEY: value })).toBe(
      `Invalid environment variables:\n  - IDP_JWT_KEY ${problem}: ${remedy}`,
    );
  },
);

test('With sslrootcert=system, the certificates of the system verify the server, if this version of Node.js can read them', () => {
  const read = Reflect.get(tls, 'getCACertificates');
  onTestFinished(() => void Object.assign(tls, { getCACertificates: read }));
  for (const [url, rest] of [
    ['postgresql://u@h/db?sslrootcert=system', 'postgresql://u@h/db?'],
    ['postgresql://u@h/db?sslmode=verify-full&sslrootcert=system&a=b', 'postgresql://u@h/db?a=b'],
  ] as const) {
    Object.assign(tls, { getCACertificates: (store: string) => [`certificates of the ${store}`] });
    expect(databaseOptions(url)).toEqual({
      connectionString: rest,
      ssl: { ca: ['certificates of the system'] },
    });
    Object.assign(tls, { getCACertificates: undefined });
    expect(databaseOptions(url)).toEqual({ connectionString: rest, ssl: { ca: undefined } });
  }
  const file = 'postgresql://u@h/db?sslmode=verify-full&sslrootcert=system.pem';
  expect(databaseOptions(file)).toEqual({ connectionString: file });
});

/** Returns the rows of tables and lists in a section of a page. */
const rowsOf = (page: string, heading: string) => {
  const sections = readFileSync(page, 'utf8').split(/^##+ /m);
  return sections.find((text) => text.startsWith(heading))?.match(/^(?:\||- ).*/gm) ?? [];
};

test('README.md, .env.example and the contract describe each variable of the service once', () => {
  const names = Object.keys({ ...clerkVariables.shape, ...variables.shape });
  const example = readFileSync('.env.example', 'utf8').match(/^[A-Z_]+(?==)/gm);
  expect(example?.toSorted()).toEqual(names.toSorted());
  const readme = rowsOf('README.md', 'Configuration');
  const formats = rowsOf('docs/contract.md', '8.2 Environment');
  const count = (lines: string[], name: string) =>
    lines.filter((line) => line.includes(`\`${name}\``)).length;
  const isLocal = (name: string) =>
    formats.some((line) => line.includes(name) && line.includes('local stack'));
  expect(names.filter((name) => count(readme, name) !== (isLocal(name) ? 0 : 1))).toEqual([]);
  const withoutFormat = names.filter((name) => count(formats, name) !== 1);
  expect(withoutFormat).toEqual(['IDP_WEBHOOK_SIGNING_SECRET', 'KV_REST_API_URL', 'KV_REST_API_TOKEN']);
});

afterEach(() => {
  vi.unstubAllEnvs();
});
const LIVE = {
  IDP_SECRET_KEY: 'sk_live_0123456789',
  IDP_PUBLISHABLE_KEY: complete.IDP_PUBLISHABLE_KEY.replace('pk_test_', 'pk_live_'),
};

test.each([
  ['ok', {}, ['all required variables are set and valid']],
  [
    'ok',
    { ...LIVE, IDP_AUTHORIZED_PARTIES: 'https://app.example.com', REGISTER_OWN_ID_ONLY: '1' },
    ['all required variables are set and valid'],
  ],
  [
    'warning',
    LIVE,
    [/^IDP_AUTHORIZED_PARTIES/, /^REGISTER_OWN_ID/].map((start) => expect.stringMatching(start)),
  ],
  [
    'failure',
    { IDP_SECRET_KEY: '', DATABASE_URL: 'hidden', CLERK_API_URL: 'hidden' },
    [
      'IDP_SECRET_KEY is missing',
      expect.stringMatching(/^CLERK_API_URL (?!.*hidden)/),
      expect.stringMatching(/^DATABASE_URL (?!.*hidden)/),
    ],
  ],
])('The doctor reports the status %s for the variables %j', (status, changes, messages) => {
  for (const [name, value] of Object.entries({ ...complete, ...changes })) vi.stubEnv(name, value);
  setEnvironment();
  const results = checkVariables();
  expect(results.map((result) => [result.status, result.message])).toEqual(
    messages.map((message) => [status, message]),
  );
});
