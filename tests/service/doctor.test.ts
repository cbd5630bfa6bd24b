import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { generateSigningKeyPem } from 'clerk-emulator';
import { escapeIdentifier } from 'pg';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { variables } from '#lib/env';
import { memoryEngine } from '../../dev/kv/memory';
import { CommandError, type KvEngine, startKvServer } from '../../dev/kv/server';
import { freePort } from '../../dev/system/listen';
import { runCommand } from '../harness/commands';
import { startProvider } from '../harness/identity-provider';
import { createTestDatabase, serverOfThisRun, type TestDatabase } from '../harness/parts/database';
import { startHttpServer, startImpostor } from '../harness/parts/impostor';
import { hasPgBouncer, startPgBouncer } from '../harness/parts/pgbouncer';
import { startTcpProxy } from '../harness/parts/tcp-proxy';
import { SIGNING_SECRET, startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

type Variables = Readonly<Record<string, string>>;
type Found = readonly ['failure' | 'warning', string, string];

const Checks = z.array(
  z.strictObject({
    name: z.string(),
    status: z.enum(['ok', 'warning', 'failure', 'skipped']),
    finding: z.string().min(1),
    remedy: z.string().min(1).optional(),
  }),
);
const Report = z.strictObject({ status: z.enum(['ok', 'failure']), checks: Checks });

const PASSWORD = 'hidden-password';
const OTHER_SECRET = `whsec_${Buffer.from('a signing secret of somebody else').toString('base64')}`;

const service = stopAfterAll(await startTestService());
const { database } = service;

/** A role of its own on a database, with the rights of a well-kept service unless told. */
async function roleOn(
  { pool }: TestDatabase,
  { attributes = '', rights = 'SELECT, INSERT', record = true, more = (_role: string): string[] => [] } = {},
): Promise<string> {
  const name = `doctor_${randomBytes(6).toString('hex')}`;
  const role = escapeIdentifier(name);
  const statements = [
    `CREATE ROLE ${role} LOGIN PASSWORD '${PASSWORD}' ${attributes}`,
    ...(rights === '' ? [] : [`GRANT ${rights} ON users TO ${role}`]),
    ...(record ? [`GRANT SELECT ON _prisma_migrations TO ${role}`] : []),
    ...more(role),
  ];
  for (const statement of statements) await pool.query(statement);
  return Object.assign(new URL(String(pool.options.connectionString)), { username: name, password: PASSWORD })
    .href;
}

/** A database of its own, in which something is wrong. */
async function databaseWith(...statements: string[]): Promise<TestDatabase> {
  const made = await createTestDatabase();
  afterAll(() => made.drop());
  for (const statement of statements) await made.pool.query(statement);
  return made;
}

const well: Variables = { ...service.environment, DATABASE_URL: await roleOn(database) };

const nobody = `127.0.0.1:${await freePort()}`;
const silent = stopAfterAll(await startImpostor(() => undefined));
const silentAddress = `127.0.0.1:${silent.port}`;
const html = stopAfterAll(
  await startHttpServer(() => new Response('<html>', { headers: { 'content-type': 'text/html' } })),
);
const broken = stopAfterAll(await startHttpServer(() => new Response('{}', { status: 500 })));
const redirecting = stopAfterAll(
  await startHttpServer(() => Response.redirect('https://login.example/', 307)),
);
const agreeing = stopAfterAll(
  await startHttpServer(({ url }) => {
    const status = url.endsWith('/ready') ? 'degraded' : 'ok';
    return Response.json(
      { status, received: true, eventType: 'doctor.check' },
      { headers: { 'x-powered-by': 'another service', 'x-clerk-auth-status': 'signed-out' } },
    );
  }),
);
const stopping = stopAfterAll(
  await startHttpServer(({ url }) => {
    if (url.endsWith('/alive')) return Response.json({ status: 'ok' });
    return Response.json({ errors: { database: 'unavailable' }, message: 'Unauthorized' }, { status: 503 });
  }),
);
const mute = stopAfterAll(
  await startTcpProxy({ host: '127.0.0.1', port: Number(new URL(serverOfThisRun().url).port) }),
);
await mute.treat('black-hole');

const elsewhere = stopAfterAll(
  await startProvider({
    secretKey: 'sk_test_hidden_key_of_another_instance',
    signingKeyPem: generateSigningKeyPem(),
  }),
);
const ofElsewhere = {
  IDP_SECRET_KEY: 'sk_test_hidden_key_of_another_instance',
  CLERK_API_URL: elsewhere.url,
};
const otherKey = generateKeyPairSync('rsa', { modulusLength: 2048 })
  .publicKey.export({ type: 'spki', format: 'pem' })
  .toString();

/** Starts a store in which another function responds to some commands. It gets the call that it replaces. */
async function storeWhere(
  commands: RegExp,
  respond: (call: () => Promise<unknown>) => unknown,
): Promise<Variables> {
  const engine = memoryEngine();
  const call: KvEngine['call'] = async (name, ...args) => {
    const original = () => engine.call(name, ...args);
    return commands.test(name) ? respond(original) : original();
  };
  const { url, token } = stopAfterAll(
    await startKvServer({ token: 'hidden-kv-token', engine: { ...engine, call } }),
  );
  return { KV_REST_API_URL: url, KV_REST_API_TOKEN: token };
}
const readOnlyStore = await storeWhere(/^set$/i, () => {
  throw new CommandError("NOPERM this user has no permissions to run the 'set' command");
});
const forgetfulStore = await storeWhere(/^get$/i, () => null);
const QUOTA_ERROR =
  'ERR max requests limit exceeded. Limit: 500000, Usage: 500000. See https://upstash.com/docs for details';
const exhaustedStore = await storeWhere(/./, () => {
  throw new CommandError(QUOTA_ERROR);
});
const fullStore = await storeWhere(/^set$/i, () => {
  throw new CommandError('ERR DB capacity quota exceeded');
});
const oddStore = await storeWhere(/^ping$/i, () => {
  throw new CommandError('LOADING hidden-value is loading');
});
let reads = 0;
const laggingStore = await storeWhere(/^get$/i, (call) => {
  reads += 1;
  return reads < 3 ? null : call();
});
const rejectingStore = stopAfterAll(
  await startHttpServer(() => Response.json({ error: QUOTA_ERROR }, { status: 400 })),
);

const at = (url: string, address: string) => Object.assign(new URL(url), { host: address }).href;
const db = (DATABASE_URL: string): Variables => ({ DATABASE_URL });

/** Secrets that an environment holds. */
function secretsOf(environment: Variables): string[] {
  const {
    DATABASE_URL = '',
    IDP_SECRET_KEY = '',
    IDP_WEBHOOK_SIGNING_SECRET = '',
    KV_REST_API_TOKEN = '',
  } = environment;
  return [
    DATABASE_URL,
    ...[...DATABASE_URL.matchAll(/:([^:@/]+)@/g)].map(([, password = '']) => password),
    IDP_SECRET_KEY,
    ...IDP_WEBHOOK_SIGNING_SECRET.split(' ').map((secret) => secret.replace('whsec_', '')),
    KV_REST_API_TOKEN,
    'hidden',
  ].filter(Boolean);
}

/** What is true of every row, whatever it says; those that are not well. */
function judged(checks: z.infer<typeof Checks>) {
  for (const { status: of, remedy } of checks) {
    expect(remedy !== undefined).toBe(of === 'warning' || of === 'failure');
    expect(remedy ?? '').not.toContain('\n');
  }
  return { checks, unwell: checks.filter((row) => row.status === 'warning' || row.status === 'failure') };
}

/** Starts the command, which writes JSON. */
function startDoctor(changes: Variables, origin?: string) {
  const environment = { ...well, ...changes };
  const args = ['--json', ...(origin === undefined ? [] : ['--url', origin])];
  return { environment, ended: runCommand('doctor', args, environment) };
}

/** What it says in the end. */
async function reported({ environment, ended }: ReturnType<typeof startDoctor>) {
  const { exit, stdout, stderr } = await ended;
  for (const secret of secretsOf(environment)) expect(stdout + stderr).not.toContain(secret);
  expect(stderr).toBe('');
  const { status, checks } = Report.parse(JSON.parse(stdout));
  expect(exit).toBe(status === 'ok' ? 0 : 1);
  return { exit, ...judged(checks) };
}

/** What the command would find, by its checks in this process: each has clients of its own, as a process has. */
async function examineHere(changes: Variables, origin?: string) {
  const environment: Variables = { ...well, ...changes };
  for (const name of Object.keys(variables.shape)) vi.stubEnv(name, environment[name] ?? '');
  vi.resetModules();
  const [{ log }, { closeDatabase }, { examine }] = await Promise.all([
    import('#lib/log'),
    import('#lib/storage/database'),
    import('#lib/doctor/examine'),
  ]);
  log.level = 'silent';
  try {
    const rows = await examine({ origin, isLocal: false });
    for (const secret of secretsOf(environment)) expect(JSON.stringify(rows)).not.toContain(secret);
    return judged(Checks.parse(rows));
  } finally {
    await closeDatabase();
  }
}
afterEach(() => {
  vi.unstubAllEnvs();
});

test('where all is well, every check says so, the deployed service included, and nothing is changed', async () => {
  const before = await database.users();
  service.kv.takeCommands();
  const { exit, checks } = await reported(startDoctor({}, service.url));
  expect(checks.filter(({ status }) => status !== 'ok')).toEqual([
    { name: 'service transport', status: 'skipped', finding: 'not asked over https' },
  ]);
  expect(exit).toBe(0);
  expect(checks.map(({ name }) => name)).toEqual([
    'variables',
    ...['secret key', 'publishable key', 'both keys', 'JWT key'],
    ...['database', 'migrations', 'database rights', 'database role', 'unique users', 'time zone', 'pooler'],
    ...['cache', 'cache write', 'cache latency', 'cache transport'],
    ...['service', 'service ready', 'service guard', 'service webhook', 'service forgery'],
    ...['service transport', 'service unknown path', 'service headers', 'service query limit'],
    'service latency',
  ]);
  expect(await database.users()).toEqual(before);
  const commands = service.kv.takeCommands();
  const keys = commands.flatMap(([command = '', key = '']) => (/^set$/i.test(command) ? [key] : []));
  expect(keys).toEqual([expect.stringMatching(/^auth:doctor:/)]);
  expect(await service.kv.engine.call('EXISTS', ...keys)).toBe(0);
});

const notMigrated = await createTestDatabase({ ...serverOfThisRun(), template: 'template0' });
afterAll(() => notMigrated.drop());
const CREATE_USERS = '20261120000000_create_users';

type Environment = [what: string, changes: Variables, found: Found[], origin?: string];

const nothingSet: Environment = [
  'nothing is set',
  Object.fromEntries(Object.keys(well).map((name) => [name, ''])),
  [
    ['failure', 'variables', 'IDP_SECRET_KEY is missing'],
    ['failure', 'variables', 'IDP_PUBLISHABLE_KEY is missing'],
    ['failure', 'variables', 'IDP_WEBHOOK_SIGNING_SECRET is missing'],
    ['failure', 'variables', 'DATABASE_URL is missing'],
    ['failure', 'variables', 'KV_REST_API_URL is missing'],
    ['failure', 'variables', 'KV_REST_API_TOKEN is missing'],
  ],
];
const oneWarning: Environment = [
  'the JWT key is not set',
  { IDP_JWT_KEY: '' },
  [['warning', 'variables', 'IDP_JWT_KEY is not set']],
];
/** Waits for 15 s, as long as a service from afar may take: the other cases are looked at meanwhile. */
const amidSilence = startDoctor(
  {
    CLERK_API_URL: `http://${silentAddress}`,
    CLERK_FAPI_URL: `http://${silentAddress}`,
    DATABASE_URL: at(well['DATABASE_URL'] ?? '', `127.0.0.1:${mute.port}`),
    KV_REST_API_URL: `http://${silentAddress}`,
  },
  `http://${silentAddress}`,
);

const environments: readonly Environment[] = [
  nothingSet,
  [
    'the keys are swapped',
    {
      IDP_SECRET_KEY: well['IDP_PUBLISHABLE_KEY'] ?? '',
      IDP_PUBLISHABLE_KEY: well['IDP_SECRET_KEY'] ?? '',
    },
    [
      ['failure', 'variables', 'IDP_SECRET_KEY is not a secret key'],
      ['failure', 'variables', 'IDP_PUBLISHABLE_KEY is not a publishable key'],
    ],
  ],
  [
    'a signing secret does not decode, the JWT key is none, and the address is of another database',
    {
      IDP_WEBHOOK_SIGNING_SECRET: 'whsec_hidden*',
      IDP_JWT_KEY: 'hidden',
      DATABASE_URL: 'mysql://me:hidden-password@localhost/db',
    },
    [
      ['failure', 'variables', 'IDP_WEBHOOK_SIGNING_SECRET must hold'],
      ['failure', 'variables', 'IDP_JWT_KEY is not'],
      ['failure', 'variables', 'DATABASE_URL is not'],
    ],
  ],
  [
    'the keys are of a test and of a live instance',
    { IDP_SECRET_KEY: 'sk_live_hidden_key_of_this_instance' },
    [
      ['failure', 'variables', 'are of different instances (test and live)'],
      ['failure', 'secret key', 'refuses it'],
    ],
  ],
  oneWarning,
  [
    'the secret key is of another instance',
    { IDP_SECRET_KEY: ofElsewhere.IDP_SECRET_KEY },
    [['failure', 'secret key', 'refuses it']],
  ],
  [
    'the keys are of two instances',
    ofElsewhere,
    [
      ['failure', 'both keys', 'are of different instances'],
      ['failure', 'JWT key', 'no key of the instance'],
    ],
  ],
  [
    'the publishable key is of another instance',
    { CLERK_FAPI_URL: elsewhere.url },
    [['failure', 'both keys', 'are of different instances']],
  ],
  [
    'the JWT key is of another instance',
    { IDP_JWT_KEY: otherKey },
    [['failure', 'JWT key', 'no key of the instance']],
  ],
  [
    'nobody listens: provider, database, cache and service',
    {
      CLERK_API_URL: `http://${nobody}`,
      CLERK_FAPI_URL: `http://${nobody}`,
      DATABASE_URL: at(well['DATABASE_URL'] ?? '', nobody),
      KV_REST_API_URL: `http://${nobody}`,
    },
    [
      ['failure', 'secret key', 'does not answer (Backend API)'],
      ['failure', 'publishable key', "instance's Frontend API does not answer"],
      ['failure', 'database', 'out of reach (ECONNREFUSED)'],
      ['failure', 'cache', 'out of reach (ECONNREFUSED)'],
      ['failure', 'service', 'out of reach (ECONNREFUSED)'],
    ],
    `http://${nobody}`,
  ],
  [
    'somebody else answers: in place of the provider, the cache and the service',
    {
      CLERK_API_URL: `http://127.0.0.1:${html.port}`,
      CLERK_FAPI_URL: `http://127.0.0.1:${html.port}`,
      KV_REST_API_URL: `http://127.0.0.1:${html.port}`,
    },
    [
      ['failure', 'secret key', 'answers something else'],
      ['failure', 'publishable key', 'answers something else than keys'],
      ['failure', 'cache', 'something else than a KV store answers'],
      ['failure', 'service', 'something else than the service answers (200, no JSON)'],
    ],
    html.url,
  ],
  [
    'provider, cache and service are out of order',
    {
      CLERK_API_URL: `http://127.0.0.1:${broken.port}`,
      CLERK_FAPI_URL: `http://127.0.0.1:${broken.port}`,
      KV_REST_API_URL: `http://127.0.0.1:${broken.port}`,
    },
    [
      ['failure', 'secret key', 'answers with status 500'],
      ['failure', 'publishable key', 'answers with status 500'],
      ['failure', 'cache', 'answers with status 500'],
      ['failure', 'service', 'answers with status 500'],
    ],
    broken.url,
  ],
  [
    'the password is wrong',
    db(Object.assign(new URL(well['DATABASE_URL'] ?? ''), { password: 'hidden' }).href),
    [['failure', 'database', 'refuses the role or its password (28P01)']],
  ],
  [
    'there is no such database',
    db(Object.assign(new URL(well['DATABASE_URL'] ?? ''), { pathname: '/nowhere' }).href),
    [['failure', 'database', 'there is no database of that name (3D000)']],
  ],
  [
    'nothing was ever migrated',
    db(await roleOn(notMigrated, { rights: '', record: false })),
    [['failure', 'migrations', `pending: ${CREATE_USERS}`]],
  ],
  [
    'a migration failed',
    db(
      await roleOn(
        await databaseWith(
          "INSERT INTO _prisma_migrations (id, checksum, migration_name) VALUES ('1', 'x', '2_bad')",
        ),
      ),
    ),
    [['failure', 'migrations', 'failed: 2_bad']],
  ],
  [
    'a migration was edited after it was applied, and the unique index is gone',
    db(
      await roleOn(
        await databaseWith(
          "UPDATE _prisma_migrations SET checksum = 'other'",
          'DROP INDEX users_identity_provider_user_id_key',
          'CREATE UNIQUE INDEX ON users (identity_provider_user_id) WHERE id IS NOT NULL',
          'CREATE UNIQUE INDEX ON users (identity_provider_user_id, id)',
        ),
      ),
    ),
    [
      ['failure', 'migrations', `edited after it was applied: ${CREATE_USERS}`],
      ['failure', 'unique users', 'no unique index'],
    ],
  ],
  [
    'the role may not read which migrations were applied',
    db(await roleOn(database, { record: false })),
    [['warning', 'migrations', 'the role may not read which migrations were applied']],
  ],
  [
    'the role may not insert',
    db(await roleOn(database, { rights: 'SELECT' })),
    [['failure', 'database rights', 'the role may not INSERT']],
  ],
  [
    'the role may nothing',
    db(await roleOn(database, { rights: '' })),
    [['failure', 'database rights', 'the role may not SELECT and INSERT']],
  ],
  [
    'the database is read-only',
    db(
      await roleOn(database, {
        more: (role) => [`ALTER ROLE ${role} SET default_transaction_read_only = on`],
      }),
    ),
    [['failure', 'database rights', 'is read-only']],
  ],
  [
    'the time zone is another, and the role may more than it needs',
    db(
      await roleOn(database, {
        attributes: 'BYPASSRLS CREATEDB CREATEROLE',
        rights: 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE',
        more: (role) => [`ALTER ROLE ${role} SET timezone = 'Europe/Berlin'`],
      }),
    ),
    [
      [
        'warning',
        'database role',
        'bypasses row security, may create databases, may create roles, may update users, may delete users, may truncate users',
      ],
      ['warning', 'time zone', 'Europe/Berlin, not UTC'],
    ],
  ],
  [
    'the role is a superuser, who owns all',
    db(database.url),
    [['warning', 'database role', 'is a superuser, bypasses row security']],
  ],
  [
    "the cache's token is wrong",
    { KV_REST_API_TOKEN: 'hidden-token' },
    [['failure', 'cache', 'the store refuses KV_REST_API_TOKEN']],
  ],
  [
    "the cache's token is a read-only one",
    readOnlyStore,
    [['failure', 'cache write', 'KV_REST_API_TOKEN is a read-only token']],
  ],
  [
    'the cache forgets',
    forgetfulStore,
    [['failure', 'cache write', 'what is written is not read back within 2 s']],
  ],
  [
    'the cache has read regions that lag',
    laggingStore,
    [['warning', 'cache write', 'what is written is not read back at once: the store has read regions']],
  ],
  [
    'the quota of the cache is used up, and it rejects each command',
    exhaustedStore,
    [['failure', 'cache', "the quota of the store's plan is used up"]],
  ],
  [
    'the quota of the cache is used up, and it rejects the request',
    { KV_REST_API_URL: rejectingStore.url },
    [['failure', 'cache', "the quota of the store's plan is used up"]],
  ],
  ['the cache is full', fullStore, [['failure', 'cache write', "the quota of the store's plan is used up"]]],
  [
    'the cache returns another error',
    oddStore,
    [['failure', 'cache', 'the store returns an error (LOADING)']],
  ],
  [
    'the host of the cache is gone, as that of an archived store is',
    // A label of 64 characters cannot exist: also a machine without DNS says so.
    { KV_REST_API_URL: `https://${'a'.repeat(64)}.invalid` },
    [['failure', 'cache', 'the host of KV_REST_API_URL does not exist (ENOTFOUND)']],
  ],
  [
    "the cache's token would travel in plain text",
    { KV_REST_API_URL: `http://${nobody.replace('127.0.0.1', '127.0.0.2')}` },
    [
      ['failure', 'cache', ''], // in which words, depends on the system
      ['warning', 'cache transport', 'in plain text'],
    ],
  ],
  [
    'the deployed service has another signing secret',
    { IDP_WEBHOOK_SIGNING_SECRET: OTHER_SECRET },
    [['failure', 'service webhook', 'refuses an event that is signed with this signing secret']],
    service.url,
  ],
  [
    'the deployed service has not the second of two signing secrets',
    { IDP_WEBHOOK_SIGNING_SECRET: `${SIGNING_SECRET} ${OTHER_SECRET}` },
    [['failure', 'service webhook', 'signing secret 2 of 2']],
    service.url,
  ],
  ['the address redirects', {}, [['failure', 'service', 'answers with a redirect (307)']], redirecting.url],
  [
    'whoever answers says yes to everything',
    {},
    [
      ['warning', 'service ready', 'ready without its cache'],
      ['failure', 'service guard', 'answers 200, not 401'],
      ['failure', 'service forgery', 'answers 200, not 400'],
      ['failure', 'service unknown path', 'responds with 200, not 404'],
      ['warning', 'service headers', 'x-clerk-auth-status, x-powered-by'],
    ],
    agreeing.url,
  ],
  [
    'the deployed service has no database',
    {},
    [
      ['failure', 'service ready', 'its database does not answer'],
      ['failure', 'service guard', 'answers 503, not 401'],
      ['failure', 'service webhook', 'answers 503 to a signed event'],
      ['failure', 'service forgery', 'answers 503, not 400'],
      ['failure', 'service unknown path', 'responds with 503, not 404'],
      ['failure', 'service query limit', 'responds with 503 to 101 query parameters'],
    ],
    stopping.url,
  ],
];

const rowsOf = (found: readonly Found[]) =>
  found.map(([status, name, words]) =>
    expect.objectContaining({ status, name, finding: expect.stringContaining(words) }),
  );

test.each([nothingSet, oneWarning])(
  'the command reports all that is found and nothing else, and exits with 1 over failures alone: %s',
  async (_what, changes, found) => {
    const { unwell, exit } = await reported(startDoctor(changes));
    expect(unwell).toEqual(rowsOf(found));
    expect(exit).toBe(found.some(([status]) => status === 'failure') ? 1 : 0);
  },
);

describe('what is wrong is found and named, and nothing else is', () => {
  test.each(environments)('%s', async (_what, changes, found, origin) => {
    expect((await examineHere(changes, origin)).unwell).toEqual(rowsOf(found));
  });

  const notRun = hasPgBouncer ? '' : ' (not run: no pgbouncer on this machine)';
  test.runIf(hasPgBouncer)(`a pooler is told of, and is no fault${notRun}`, async () => {
    const { stop, through } = await startPgBouncer(serverOfThisRun().url);
    try {
      const { checks } = await examineHere(db(through(String(database.pool.options.connectionString))));
      expect(checks).toContainEqual({ name: 'pooler', status: 'ok', finding: 'by transaction' });
      expect(checks.find(({ name }) => name === 'migrations')?.status).toBe('ok');
    } finally {
      await stop();
    }
  });
});

test('somebody listens and is silent, provider, database, cache and service: the command says so, and leaves', async () => {
  const { unwell, exit } = await reported(amidSilence);
  expect(unwell).toEqual(
    rowsOf([
      ['failure', 'secret key', 'does not answer (Backend API)'],
      ['failure', 'publishable key', "instance's Frontend API does not answer"],
      ['failure', 'database', 'does not answer in time'],
      ['failure', 'cache', 'does not answer within 500 ms'],
      ['failure', 'service', 'does not answer within 15 s'],
    ]),
  );
  expect(exit).toBe(1);
});

test('a terminal gets a row for each check and a line of remedy below each that is not well, in no colours here', async () => {
  const environment = { ...well, KV_REST_API_TOKEN: 'hidden-token', IDP_JWT_KEY: '' };
  const { exit, stdout, stderr } = await runCommand('doctor', [], environment);
  expect({ exit, stderr }).toEqual({ exit: 1, stderr: '' });
  expect(stdout).toMatch(
    /^warning {2}variables {8}IDP_JWT_KEY is not set.*\n +-> Set it to the JWT public key$/m,
  );
  expect(stdout).toMatch(
    /^FAILURE {2}cache {12}the store refuses KV_REST_API_TOKEN\n +-> Take KV_REST_API_URL/m,
  );
  expect(stdout).toMatch(/\n\n\d+ ok, 1 to look at, 1 failed, 3 skipped\n$/);
  expect(stdout).not.toContain('\x1b');
  for (const secret of secretsOf(environment)) expect(stdout).not.toContain(secret);
});

test.each([
  ['--fast', "Unknown option '--fast'"],
  ['--url=http://app.example.com', '--url is an https:// address'],
  ['--url=https://me:hidden@app.example.com', 'without a path'],
  ['--url=https://app.example.com/users', 'without a path'],
  ['--url=app.example.com', '--url is an https:// address'],
])('it does not begin over %s, and says why', async (option, words) => {
  const { exit, stdout, stderr } = await runCommand('doctor', ['--json', option], well);
  expect({ exit, stdout }).toEqual({ exit: 2, stdout: '' });
  expect(stderr).toContain(words);
  expect(stderr).toContain('npm run doctor');
  expect(stderr).not.toContain('hidden');
});
