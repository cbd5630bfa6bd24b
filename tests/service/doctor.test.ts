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
import { createTestDatabase, serverOfThisRun, type TestDatabase } from '../harness/dependencies/database';
import { hasPgBouncer, startPgBouncer } from '../harness/dependencies/pgbouncer';
import { startFetchServer, startStubServer } from '../harness/dependencies/stub-server';
import { startTcpProxy } from '../harness/dependencies/tcp-proxy';
import { startProvider } from '../harness/identity-provider';
import { SIGNING_SECRET } from '../harness/keys';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

// `npm run doctor` checks the variables, the database, the cache, the identity provider and, with `--url`, a deployed service.

type Variables = Readonly<Record<string, string>>;
type Problem = readonly ['failure' | 'warning', name: string, message: string];

const Checks = z.array(
  z.strictObject({
    name: z.string(),
    status: z.enum(['ok', 'warning', 'failure', 'skipped']),
    message: z.string().min(1),
    remedy: z.string().min(1).optional(),
  }),
);
const Report = z.strictObject({ status: z.enum(['ok', 'failure']), checks: Checks });

const PASSWORD = 'hidden-password';
const OTHER_SECRET = `whsec_${Buffer.from('the signing secret of another endpoint').toString('base64')}`;

const service = stopAfterAll(await startTestService());
const { database } = service;

/**
 * Creates a role and returns its connection string. Without options, the role has the recommended privileges. If `record` is
 * false, the role may not read the table of applied migrations.
 */
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

/** Creates a database and runs statements that damage it. */
async function databaseWith(...statements: string[]): Promise<TestDatabase> {
  const damaged = await createTestDatabase();
  afterAll(() => damaged.drop());
  for (const statement of statements) await damaged.pool.query(statement);
  return damaged;
}

const valid: Variables = { ...service.environment, DATABASE_URL: await roleOn(database) };

const closedAddress = `127.0.0.1:${await freePort()}`;
const silent = stopAfterAll(await startStubServer(() => undefined));
const silentAddress = `127.0.0.1:${silent.port}`;
const html = stopAfterAll(
  await startFetchServer(() => new Response('<html>', { headers: { 'content-type': 'text/html' } })),
);
const broken = stopAfterAll(await startFetchServer(() => new Response('{}', { status: 500 })));
const redirecting = stopAfterAll(
  await startFetchServer(() => Response.redirect('https://login.example/', 307)),
);
/** Another service that responds to every request with 200. */
const agreeing = stopAfterAll(
  await startFetchServer(({ url }) => {
    const status = url.endsWith('/ready') ? 'degraded' : 'ok';
    return Response.json(
      { status, received: true, eventType: 'doctor.check' },
      { headers: { 'x-powered-by': 'another service', 'x-clerk-auth-status': 'signed-out' } },
    );
  }),
);
/** A service whose database is unavailable. */
const withoutDatabase = stopAfterAll(
  await startFetchServer(({ url }) => {
    if (url.endsWith('/alive')) return Response.json({ status: 'ok' });
    return Response.json({ errors: { database: 'unavailable' }, message: 'Unauthorized' }, { status: 503 });
  }),
);
/** A database that accepts connections and does not respond. */
const silentDatabase = stopAfterAll(
  await startTcpProxy({ host: '127.0.0.1', port: Number(new URL(serverOfThisRun().url).port) }),
);
await silentDatabase.treat('black-hole');

/** Another instance of the identity provider. */
const elsewhere = stopAfterAll(
  await startProvider({
    secretKey: 'sk_test_hidden_key_of_another_instance',
    signingKeyPem: generateSigningKeyPem(),
  }),
);
/** Variables for the Backend API of this other instance. */
const ofElsewhere = {
  IDP_SECRET_KEY: 'sk_test_hidden_key_of_another_instance',
  CLERK_API_URL: elsewhere.url,
};
const otherKey = generateKeyPairSync('rsa', { modulusLength: 2048 })
  .publicKey.export({ type: 'spki', format: 'pem' })
  .toString();

/**
 * Starts a KV store. For each command whose name matches `commands`, the store replies with the result of `respond`. The
 * parameter `call` of `respond` runs the original command.
 */
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
  await startFetchServer(() => Response.json({ error: QUOTA_ERROR }, { status: 400 })),
);

/** Replaces the host and the port of a URL. */
const at = (url: string, address: string) => Object.assign(new URL(url), { host: address }).href;
const db = (DATABASE_URL: string): Variables => ({ DATABASE_URL });

/** Returns the secrets that an environment contains. */
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

/**
 * Asserts that exactly the warnings and failures have a remedy. Returns all checks as `checks`, and only the warnings and
 * failures as `problems`.
 */
function withProblems(checks: z.infer<typeof Checks>) {
  for (const { status, remedy } of checks) {
    expect(remedy !== undefined).toBe(status === 'warning' || status === 'failure');
    expect(remedy ?? '').not.toContain('\n');
  }
  const problems = checks.filter(({ status }) => status === 'warning' || status === 'failure');
  return { checks, problems };
}

/** Starts the doctor command with `--json`. `origin` is the URL of the service to check. */
function startDoctor(changes: Variables, origin?: string) {
  const environment = { ...valid, ...changes };
  const args = ['--json', ...(origin === undefined ? [] : ['--url', origin])];
  return { environment, ended: runCommand('doctor', args, environment) };
}

/** Waits for a doctor command and returns its report. */
async function reportOf({ environment, ended }: ReturnType<typeof startDoctor>) {
  const { exit, stdout, stderr } = await ended;
  for (const secret of secretsOf(environment)) expect(stdout + stderr).not.toContain(secret);
  expect(stderr).toBe('');
  const { status, checks } = Report.parse(JSON.parse(stdout));
  expect(exit).toBe(status === 'ok' ? 0 : 1);
  return { exit, ...withProblems(checks) };
}

/** Runs the checks of the doctor in this process, with newly loaded modules that read the changed variables. */
async function runChecksHere(changes: Variables, origin?: string, handlesEvents = false) {
  const environment: Variables = { ...valid, ...changes };
  for (const name of Object.keys(variables.shape)) vi.stubEnv(name, environment[name] ?? '');
  vi.resetModules();
  const [{ log }, { closeDatabase }, { runChecks }] = await Promise.all([
    import('#lib/log'),
    import('#lib/storage/database'),
    import('#lib/doctor/run-checks'),
  ]);
  log.level = 'silent';
  try {
    const checks = await runChecks({ origin, isLocal: false, handlesEvents });
    for (const secret of secretsOf(environment)) expect(JSON.stringify(checks)).not.toContain(secret);
    return withProblems(Checks.parse(checks));
  } finally {
    await closeDatabase();
  }
}
afterEach(() => {
  vi.unstubAllEnvs();
});

test('The doctor finds no problem in a valid environment and leaves no data behind', async () => {
  const before = await database.users();
  service.kv.takeCommands();
  const { exit, checks } = await reportOf(startDoctor({}, service.url));
  expect(checks.filter(({ status }) => status !== 'ok')).toEqual([
    { name: 'service transport', status: 'skipped', message: 'the URL is not https://' },
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

test.each(['forgotten_until', 'previous_links'])(
  'The doctor reports a failure if the function %s() is missing or the database role may not execute the function',
  async (name) => {
    const without = await databaseWith(`DROP FUNCTION ${name}`);
    const closed = await databaseWith(`REVOKE EXECUTE ON FUNCTION ${name} FROM PUBLIC`);
    for (const damaged of [without, closed]) {
      expect((await runChecksHere(db(await roleOn(damaged)))).problems).toEqual(
        matching([['failure', 'database rights', `the role may not execute the function ${name}`]]),
      );
    }
  },
);

test('The doctor requires privileges on the webhook tables only if the application has event handlers', async () => {
  const tables = 'webhook_messages, webhook_subjects, pending_deletions';
  const more = (role: string) => [`GRANT SELECT, INSERT, UPDATE, DELETE ON ${tables} TO ${role}`];
  expect((await runChecksHere({}, undefined, true)).problems).toEqual(
    matching([['failure', 'database rights', 'the role may not write the tables of webhook events']]),
  );
  expect((await runChecksHere(db(await roleOn(database, { more })), undefined, true)).problems).toEqual([]);
});

const notMigrated = await createTestDatabase({ ...serverOfThisRun(), template: 'template0' });
afterAll(() => notMigrated.drop());
const CREATE_USERS = '20261120000000_create_users';

type Case = [description: string, changes: Variables, problems: Problem[], origin?: string];

const nothingSet: Case = [
  'no variable is set',
  Object.fromEntries(Object.keys(valid).map((name) => [name, ''])),
  [
    ['failure', 'variables', 'IDP_SECRET_KEY is missing'],
    ['failure', 'variables', 'IDP_PUBLISHABLE_KEY is missing'],
    ['failure', 'variables', 'IDP_WEBHOOK_SIGNING_SECRET is missing'],
    ['failure', 'variables', 'DATABASE_URL is missing'],
    ['failure', 'variables', 'KV_REST_API_URL is missing'],
    ['failure', 'variables', 'KV_REST_API_TOKEN is missing'],
  ],
];
const oneWarning: Case = [
  'IDP_JWT_KEY is not set',
  { IDP_JWT_KEY: '' },
  [['warning', 'variables', 'IDP_JWT_KEY is not set']],
];
/**
 * A doctor command that checks servers that do not respond. The command takes 15 s, which is the timeout of a call to the
 * service. It starts here, so that it runs during the other tests.
 */
const silentServers = startDoctor(
  {
    CLERK_API_URL: `http://${silentAddress}`,
    CLERK_FAPI_URL: `http://${silentAddress}`,
    DATABASE_URL: at(valid['DATABASE_URL'] ?? '', `127.0.0.1:${silentDatabase.port}`),
    KV_REST_API_URL: `http://${silentAddress}`,
  },
  `http://${silentAddress}`,
);

const cases: readonly Case[] = [
  nothingSet,
  [
    'the keys are swapped',
    {
      IDP_SECRET_KEY: valid['IDP_PUBLISHABLE_KEY'] ?? '',
      IDP_PUBLISHABLE_KEY: valid['IDP_SECRET_KEY'] ?? '',
    },
    [
      ['failure', 'variables', 'IDP_SECRET_KEY must be a secret key'],
      ['failure', 'variables', 'IDP_PUBLISHABLE_KEY must be a publishable key'],
    ],
  ],
  [
    'the signing secret, the JWT key and the database URL are malformed',
    {
      IDP_WEBHOOK_SIGNING_SECRET: 'whsec_hidden*',
      IDP_JWT_KEY: 'hidden',
      DATABASE_URL: 'mysql://me:hidden-password@localhost/db',
    },
    [
      ['failure', 'variables', 'IDP_WEBHOOK_SIGNING_SECRET must contain'],
      ['failure', 'variables', 'IDP_JWT_KEY is not'],
      ['failure', 'variables', 'DATABASE_URL must be'],
    ],
  ],
  [
    'the secret key belongs to a live instance, and the publishable key to a test instance',
    { IDP_SECRET_KEY: 'sk_live_hidden_key_of_this_instance' },
    [
      ['failure', 'variables', 'IDP_SECRET_KEY must belong to the same instance as IDP_PUBLISHABLE_KEY'],
      ['failure', 'secret key', 'rejects IDP_SECRET_KEY'],
    ],
  ],
  oneWarning,
  [
    'the secret key belongs to another instance',
    { IDP_SECRET_KEY: ofElsewhere.IDP_SECRET_KEY },
    [['failure', 'secret key', 'rejects IDP_SECRET_KEY']],
  ],
  [
    'the keys belong to different instances',
    ofElsewhere,
    [
      ['failure', 'both keys', 'belong to different instances'],
      ['failure', 'JWT key', 'not a key of the instance'],
    ],
  ],
  [
    'the publishable key belongs to another instance',
    { CLERK_FAPI_URL: elsewhere.url },
    [['failure', 'both keys', 'belong to different instances']],
  ],
  [
    'the JWT key belongs to another instance',
    { IDP_JWT_KEY: otherKey },
    [['failure', 'JWT key', 'not a key of the instance']],
  ],
  [
    'provider, database, cache and service are not running',
    {
      CLERK_API_URL: `http://${closedAddress}`,
      CLERK_FAPI_URL: `http://${closedAddress}`,
      DATABASE_URL: at(valid['DATABASE_URL'] ?? '', closedAddress),
      KV_REST_API_URL: `http://${closedAddress}`,
    },
    [
      ['failure', 'secret key', '(Backend API)'],
      ['failure', 'publishable key', "instance's Frontend API"],
      ['failure', 'database', 'cannot connect to the database (ECONNREFUSED)'],
      ['failure', 'cache', 'cannot connect to the store (ECONNREFUSED)'],
      ['failure', 'service', 'cannot connect to the service (ECONNREFUSED)'],
    ],
    `http://${closedAddress}`,
  ],
  [
    'other servers respond instead of provider, cache and service',
    {
      CLERK_API_URL: `http://127.0.0.1:${html.port}`,
      CLERK_FAPI_URL: `http://127.0.0.1:${html.port}`,
      KV_REST_API_URL: `http://127.0.0.1:${html.port}`,
    },
    [
      ['failure', 'secret key', '(Backend API)'],
      ['failure', 'publishable key', "instance's Frontend API"],
      ['failure', 'cache', 'is not that of a KV store'],
      ['failure', 'service', 'the response is not that of the service (200, not a JSON object)'],
    ],
    html.url,
  ],
  [
    'provider, cache and service respond with 500',
    {
      CLERK_API_URL: `http://127.0.0.1:${broken.port}`,
      CLERK_FAPI_URL: `http://127.0.0.1:${broken.port}`,
      KV_REST_API_URL: `http://127.0.0.1:${broken.port}`,
    },
    [
      ['failure', 'secret key', 'with status 500'],
      ['failure', 'publishable key', 'with status 500'],
      ['failure', 'cache', 'the store responds with status 500'],
      ['failure', 'service', 'GET /health/alive gets a 500 instead of a 200'],
    ],
    broken.url,
  ],
  [
    'the password is wrong',
    db(Object.assign(new URL(valid['DATABASE_URL'] ?? ''), { password: 'hidden' }).href),
    [['failure', 'database', 'rejects the role or its password (28P01)']],
  ],
  [
    'the database does not exist',
    db(Object.assign(new URL(valid['DATABASE_URL'] ?? ''), { pathname: '/nowhere' }).href),
    [['failure', 'database', 'the database does not exist (3D000)']],
  ],
  [
    'no migration is applied',
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
    'an applied migration was edited, and the unique index does not exist',
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
      ['failure', 'migrations', `applied and then edited: ${CREATE_USERS}`],
      ['failure', 'unique users', 'no unique index'],
    ],
  ],
  [
    'the role may not read the table of applied migrations',
    db(await roleOn(database, { record: false })),
    [['warning', 'migrations', 'the role may not read the table of applied migrations']],
  ],
  [
    'the role may not insert',
    db(await roleOn(database, { rights: 'SELECT' })),
    [['failure', 'database rights', 'the role may not INSERT']],
  ],
  [
    'the role has no privileges',
    db(await roleOn(database, { rights: '' })),
    [['failure', 'database rights', 'the role may neither SELECT nor INSERT']],
  ],
  [
    'the database is read-only',
    db(
      await roleOn(database, {
        more: (role) => [`ALTER ROLE ${role} SET default_transaction_read_only = on`],
      }),
    ),
    [['failure', 'database rights', 'the database is read-only']],
  ],
  [
    'the time zone is not UTC, and the role has more privileges than it needs',
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
        'the role bypasses row security, may create databases, may create roles, may update users, may delete users, may truncate users',
      ],
      ['warning', 'time zone', 'the time zone is Europe/Berlin and not UTC'],
    ],
  ],
  [
    'the role is a superuser',
    db(database.url),
    [['warning', 'database role', 'the role is a superuser, bypasses row security']],
  ],
  [
    'the token of the cache is wrong',
    { KV_REST_API_TOKEN: 'hidden-token' },
    [['failure', 'cache', 'the store rejects KV_REST_API_TOKEN']],
  ],
  [
    'the token of the cache is read-only',
    readOnlyStore,
    [['failure', 'cache write', 'KV_REST_API_TOKEN is a read-only token']],
  ],
  [
    'the cache loses written values',
    forgetfulStore,
    [['failure', 'cache write', 'a written value cannot be read within 2 s']],
  ],
  [
    'the read regions of the cache lag behind',
    laggingStore,
    [['warning', 'cache write', 'a written value cannot be read immediately: the store has read regions']],
  ],
  [
    'the quota of the cache is used up, and the store rejects each command',
    exhaustedStore,
    [['failure', 'cache', "the quota of the store's plan is used up"]],
  ],
  [
    'the quota of the cache is used up, and the store rejects the whole HTTP request',
    { KV_REST_API_URL: rejectingStore.url },
    [['failure', 'cache', "the quota of the store's plan is used up"]],
  ],
  ['the cache is full', fullStore, [['failure', 'cache write', "the quota of the store's plan is used up"]]],
  [
    'the cache responds to PING with an error',
    oddStore,
    [['failure', 'cache', 'the store returns an error (LOADING)']],
  ],
  [
    'the host of the cache does not exist, for example because the store was archived',
    // This DNS label is longer than 63 characters, so the lookup always fails with ENOTFOUND. On a machine without DNS, the
    // lookup of a valid name could fail with another error.
    { KV_REST_API_URL: `https://${'a'.repeat(64)}.invalid` },
    [['failure', 'cache', 'the host of KV_REST_API_URL does not exist (ENOTFOUND)']],
  ],
  [
    'the token of the cache is sent unencrypted',
    // The doctor regards 127.0.0.1 as this machine, but 127.0.0.2 as another machine. No server listens at this address, so the
    // connection fails, with an error that depends on the operating system.
    { KV_REST_API_URL: `http://${closedAddress.replace('127.0.0.1', '127.0.0.2')}` },
    [
      ['failure', 'cache', ''],
      ['warning', 'cache transport', 'the token is sent unencrypted'],
    ],
  ],
  [
    'the signing secret of the deployed service differs from the signing secret of the environment',
    { IDP_WEBHOOK_SIGNING_SECRET: OTHER_SECRET },
    [
      [
        'failure',
        'service webhook',
        'rejects an event that is signed with the signing secret of this environment',
      ],
    ],
    service.url,
  ],
  [
    'the environment has two signing secrets, and the deployed service has only the first',
    { IDP_WEBHOOK_SIGNING_SECRET: `${SIGNING_SECRET} ${OTHER_SECRET}` },
    [['failure', 'service webhook', 'signing secret 2 of 2']],
    service.url,
  ],
  ['the URL redirects', {}, [['failure', 'service', 'the response is a redirect (307)']], redirecting.url],
  [
    'another service accepts every request',
    {},
    [
      ['warning', 'service ready', 'ready, but the cache of the service does not respond'],
      ['failure', 'service guard', 'gets a 200 instead of a 401'],
      ['failure', 'service forgery', 'gets a 200 instead of a 400'],
      ['failure', 'service unknown path', 'gets a 200 instead of a 404'],
      ['warning', 'service headers', 'x-clerk-auth-status, x-powered-by'],
      ['failure', 'service query limit', 'accepts 101 query parameters'],
    ],
    agreeing.url,
  ],
  [
    'the deployed service has no database',
    {},
    [
      ['failure', 'service ready', 'the database of the service does not respond'],
      ['failure', 'service guard', 'gets a 503 instead of a 401'],
      ['failure', 'service webhook', 'a signed event gets a 503'],
      ['failure', 'service forgery', 'gets a 503 instead of a 400'],
      ['failure', 'service unknown path', 'gets a 503 instead of a 404'],
      ['failure', 'service query limit', 'responds with 503 to 101 query parameters'],
    ],
    withoutDatabase.url,
  ],
];

/** Returns a matcher for each expected problem. */
const matching = (problems: readonly Problem[]) =>
  problems.map(([status, name, message]) =>
    expect.objectContaining({ status, name, message: expect.stringContaining(message) }),
  );

test.each([nothingSet, oneWarning])(
  'The doctor command reports exactly the expected problems if %s, and exits with 1 only for a failure',
  async (_description, changes, expected) => {
    const { problems, exit } = await reportOf(startDoctor(changes));
    expect(problems).toEqual(matching(expected));
    expect(exit).toBe(expected.some(([status]) => status === 'failure') ? 1 : 0);
  },
);

describe('The checks', () => {
  test.each(cases)(
    'The checks of the doctor report exactly the expected problems if %s',
    async (_description, changes, expected, origin) => {
      expect((await runChecksHere(changes, origin)).problems).toEqual(matching(expected));
    },
  );

  const notRun = hasPgBouncer ? '' : ' (not run: pgbouncer is not installed)';
  test.runIf(hasPgBouncer)(
    `The doctor reports a connection pooler and does not count it as a problem${notRun}`,
    async () => {
      const { stop, through } = await startPgBouncer(serverOfThisRun().url);
      try {
        const { checks } = await runChecksHere(db(through(String(database.pool.options.connectionString))));
        expect(checks).toContainEqual({
          name: 'pooler',
          status: 'ok',
          message: 'a pooler that pools by transaction',
        });
        expect(checks.find(({ name }) => name === 'migrations')?.status).toBe('ok');
      } finally {
        await stop();
      }
    },
  );
});

test('The doctor command reports timeouts if provider, database, cache and service do not respond, and then exits', async () => {
  const { problems, exit } = await reportOf(silentServers);
  expect(problems).toEqual(
    matching([
      ['failure', 'secret key', '(Backend API)'],
      ['failure', 'publishable key', "instance's Frontend API"],
      ['failure', 'database', 'the database does not respond in time'],
      ['failure', 'cache', 'the store does not respond within 500 ms'],
      ['failure', 'service', 'the service does not respond within 15 s'],
    ]),
  );
  expect(exit).toBe(1);
});

test('Without --json, the doctor command prints a line for each check, and the remedy below each problem', async () => {
  const environment = { ...valid, KV_REST_API_TOKEN: 'hidden-token', IDP_JWT_KEY: '' };
  const { exit, stdout, stderr } = await runCommand('doctor', [], environment);
  expect({ exit, stderr }).toEqual({ exit: 1, stderr: '' });
  expect(stdout).toMatch(
    /^warning {2}variables {8}IDP_JWT_KEY is not set.*\n +-> Set it to the JWT public key$/m,
  );
  expect(stdout).toMatch(
    /^FAILURE {2}cache {12}the store rejects KV_REST_API_TOKEN\n +-> Copy both KV_REST_API_URL/m,
  );
  expect(stdout).toMatch(/\n\n\d+ ok, 1 warning, 1 failed, 3 skipped\n$/);
  expect(stdout).not.toContain('\x1b');
  for (const secret of secretsOf(environment)) expect(stdout).not.toContain(secret);
});

test.each([
  ['--fast', "Unknown option '--fast'"],
  ['--url=http://app.example.com', 'Invalid --url: use an https:// URL'],
  ['--url=https://me:hidden@app.example.com', 'use an origin only'],
  ['--url=https://:hidden@app.example.com', 'use an origin only'],
  ['--url=https://app.example.com/users', 'use an origin only'],
  ['--url=https://app.example.com/#users', 'use an origin only'],
  ['--url=app.example.com', 'Invalid --url: use an https:// URL'],
])(
  'The doctor command exits with 2 and prints its usage for the invalid option %s',
  async (option, words) => {
    const { exit, stdout, stderr } = await runCommand('doctor', ['--json', option], valid);
    expect({ exit, stdout }).toEqual({ exit: 2, stdout: '' });
    expect(stderr).toContain(words);
    expect(stderr).toContain('npm run doctor');
    expect(stderr).not.toContain('hidden');
  },
);
