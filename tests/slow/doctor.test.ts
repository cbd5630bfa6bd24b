import { generateSigningKeyPem } from 'clerk-emulator';
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import type { CheckResult } from '#lib/base/check';
import { CommandError, memoryEngine, startKvServer } from '../../dev/kv';
import { freePort } from '../../dev/system/listen';
import { runCommand } from '../harness/commands';
import {
  createTestDatabase,
  ROLE_PASSWORD,
  serverOfThisRun,
  type TestDatabase,
} from '../harness/dependencies/database';
import { startFetchServer } from '../harness/dependencies/stub-server';
import { startProvider } from '../harness/identity-provider';
import { SIGNING_SECRET, VARIABLE_NAMES } from '../harness/keys';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

type Variables = Readonly<Record<string, string>>;
type Problem = readonly ['failure' | 'warning', name: string, message: string];

const OTHER_SECRET = `whsec_${Buffer.from('the signing secret of another endpoint').toString('base64')}`;

const service = stopAfterAll(await startTestService());
const { database } = service;

const USUAL_RIGHTS =
  'GRANT SELECT, INSERT ON users, tenants TO $role; GRANT SELECT ON _prisma_migrations TO $role';
/** Creates a role and returns the variable that connects as this role. */
async function roleOn({ createRole }: TestDatabase, statements = USUAL_RIGHTS): Promise<Variables> {
  return { DATABASE_URL: (await createRole(statements)).url };
}

/** Creates a database, runs statements that damage it, and returns the variable that connects as a role with the usual rights. */
async function damaged(...statements: string[]): Promise<Variables> {
  const created = await createTestDatabase();
  afterAll(() => created.drop());
  for (const statement of statements) await created.pool.query(statement);
  return roleOn(created);
}

const valid: Variables = {
  ...service.environment,
  ...(await roleOn(database)),
};
const databaseUrl = (changes: object): Variables => ({
  DATABASE_URL: Object.assign(new URL(valid['DATABASE_URL'] ?? ''), changes).href,
});

const closed = `127.0.0.1:${await freePort()}`;
const html = stopAfterAll(
  await startFetchServer(() => new Response('<html>', { headers: { 'content-type': 'text/html' } })),
);
/** Another service that responds to every request with 200. */
const agreeing = stopAfterAll(
  await startFetchServer(({ url }) => {
    const status = url.endsWith('/ready') ? 'degraded' : 'ok';
    return Response.json({ status, eventType: 'doctor.check' });
  }),
);
/** A service whose database is unavailable, and whose headers a proxy changes. */
const broken = stopAfterAll(
  await startFetchServer(({ url }) => {
    if (url.endsWith('/alive')) return Response.json({ status: 'ok' });
    if (url.endsWith('/ready'))
      return Response.json({ errors: { database: 'unavailable' } }, { status: 503 });
    const [status, message] = url.endsWith('/me')
      ? [401, 'Unauthorized']
      : [400, 'Invalid webhook signature'];
    return Response.json({ message }, { status, headers: { 'x-powered-by': 'a proxy' } });
  }),
);

/** Another instance of the identity provider. */
const OTHER_KEY = 'sk_test_hidden_key_of_another_instance';
const elsewhere = stopAfterAll(
  await startProvider({ secretKey: OTHER_KEY, signingKeyPem: generateSigningKeyPem() }),
);

/** Starts a KV store that replies with the result of `respond` to each command whose name matches. */
async function storeWhere(commands: RegExp, respond: () => unknown): Promise<Variables> {
  const engine = memoryEngine();
  const call: typeof engine.call = async (name, ...args) =>
    commands.test(name) ? respond() : engine.call(name, ...args);
  const { url, token } = stopAfterAll(await startKvServer({ token: 'hidden-kv-token', engine: { call } }));
  return { KV_REST_API_URL: url, KV_REST_API_TOKEN: token };
}
const failing = (message: string) => () => {
  throw new CommandError(message);
};
const QUOTA = 'ERR max requests limit exceeded. Limit: 500000, Usage: 500000';
const rejecting = stopAfterAll(
  await startFetchServer(() => Response.json({ error: QUOTA }, { status: 400 })),
);

/** Returns the secrets that an environment contains. */
const secretsOf = (environment: Variables): string[] =>
  [
    ROLE_PASSWORD,
    'hidden',
    environment['IDP_SECRET_KEY'] ?? '',
    environment['KV_REST_API_TOKEN'] ?? '',
    ...(environment['IDP_WEBHOOK_SIGNING_SECRET'] ?? '')
      .split(' ')
      .map((secret) => secret.replace('whsec_', '')),
  ].filter(Boolean);

/** Returns the checks that are neither `ok` nor skipped. Exactly these checks have a remedy, which is one line. */
function problemsIn(checks: readonly CheckResult[]) {
  const problems = checks.filter(({ status }) => status === 'warning' || status === 'failure');
  expect(checks.filter(({ remedy }) => remedy !== undefined)).toEqual(problems);
  expect(problems.filter(({ remedy = '' }) => remedy.includes('\n'))).toEqual([]);
  return problems;
}

/** Runs the checks of the doctor in this process, with newly loaded modules that read the changed variables. */
async function runChecksHere(changes: Variables, origin?: string, handlesEvents = false) {
  const environment: Variables = { ...valid, ...changes };
  for (const name of VARIABLE_NAMES) vi.stubEnv(name, environment[name] ?? '');
  vi.resetModules();
  const [{ log }, { closeDatabase }, { runChecks }] = await Promise.all([
    import('#lib/base/log'),
    import('#lib/storage/database'),
    import('#lib/doctor/run-checks'),
  ]);
  log.level = 'silent';
  try {
    const checks = await runChecks(origin, handlesEvents);
    for (const secret of secretsOf(environment)) expect(JSON.stringify(checks)).not.toContain(secret);
    return problemsIn(checks);
  } finally {
    await closeDatabase();
  }
}
afterEach(() => {
  vi.unstubAllEnvs();
});

const matching = (problems: readonly Problem[]) =>
  problems.map(([status, name, message]) =>
    expect.objectContaining({ status, name, message: expect.stringContaining(message) }),
  );

test('The doctor command finds no problem in a valid environment, exits with 0 and leaves no data behind', async () => {
  const before = await database.users();
  service.kv.takeCommands();
  const { exit, stdout, stderr } = await runCommand('doctor', ['--json', '--url', service.url], valid);
  const { checks, status }: { checks: CheckResult[]; status: string } = JSON.parse(stdout);
  expect({ exit, stderr, status }).toEqual({ exit: 0, stderr: '', status: 'ok' });
  for (const secret of secretsOf(valid)) expect(stdout).not.toContain(secret);
  expect(checks.filter((check) => check.status !== 'ok')).toEqual([]);
  expect(await database.users()).toEqual(before);
  const keys = service.kv
    .takeCommands()
    .flatMap(([name = '', key = '']) => (/^set$/i.test(name) ? [key] : []));
  expect([...new Set(keys)]).toEqual([expect.stringMatching(/^auth:doctor:/)]);
  expect(await service.kv.engine.call('GET', keys[0] ?? '')).toBeNull();
});

const notMigrated = await createTestDatabase({ ...serverOfThisRun(), template: 'template0' });
afterAll(() => notMigrated.drop());

/** Environments in which one check fails, by the name of the check and its message. */
const FAILURES: Readonly<Record<string, Variables>> = {
  'secret key: the Backend API responds with status 401': { IDP_SECRET_KEY: OTHER_KEY },
  'registration: a table or a function of the service does not exist (42883)': await damaged(
    'DROP FUNCTION previous_links(text, text[])',
  ),
  'registration: there is no unique index on users.identity_provider_user_id': await damaged(
    'DROP INDEX users_identity_provider_user_id_key',
    'CREATE UNIQUE INDEX ON users (identity_provider_user_id) WHERE id IS NOT NULL',
  ),
  'registration: the role may not link users or tenants (42501)': await roleOn(
    database,
    `${USUAL_RIGHTS}; REVOKE INSERT ON tenants FROM $role`,
  ),
  'registration: the database is read-only': await roleOn(
    database,
    `${USUAL_RIGHTS}; ALTER ROLE $role SET default_transaction_read_only = on`,
  ),
  'cache: the store rejects KV_REST_API_TOKEN': { KV_REST_API_TOKEN: 'hidden-token' },
  'cache: KV_REST_API_TOKEN is a read-only token': await storeWhere(
    /^set$/i,
    failing('NOPERM no permissions to run this command'),
  ),
  'cache: a written value cannot be read within 2 s': await storeWhere(/^get$/i, () => null),
  'cache: the store ignores NX, or the error of a command': await storeWhere(/^set$/i, () => 'OK'),
  "cache: the quota of the store's plan is used up": await storeWhere(/./, failing(QUOTA)),
  'cache: the store returns an error (LOADING)': await storeWhere(/^set$/i, failing('LOADING hidden-value')),
};

test.each(Object.entries(FAILURES))(
  'The doctor reports exactly this failure in an environment that has it: %s',
  async (failure, changes) => {
    const [name = '', message = ''] = failure.split(': ');
    expect(await runChecksHere(changes)).toEqual(matching([['failure', name, message]]));
  },
);

const cases: [description: string, changes: Variables, problems: Problem[], origin?: string][] = [
  [
    'the keys belong to different instances',
    { IDP_SECRET_KEY: OTHER_KEY, CLERK_API_URL: elsewhere.url },
    [
      ['failure', 'both keys', 'belong to different instances'],
      ['failure', 'JWT key', 'not a key of the instance'],
    ],
  ],
  [
    'provider, database, cache and service are not running',
    {
      ...databaseUrl({ host: closed }),
      CLERK_API_URL: `http://${closed}`,
      CLERK_FAPI_URL: `http://${closed}`,
      KV_REST_API_URL: `http://${closed}`,
    },
    [
      ['failure', 'secret key', 'the Backend API does not respond (ECONNREFUSED)'],
      ['failure', 'publishable key', "the instance's Frontend API does not respond (ECONNREFUSED)"],
      ['failure', 'database', 'cannot connect to the database (ECONNREFUSED)'],
      ['failure', 'cache', 'cannot connect to the store (ECONNREFUSED)'],
      ['failure', 'service', 'cannot connect to the service (ECONNREFUSED)'],
    ],
    `http://${closed}`,
  ],
  [
    'other servers respond instead of provider, cache and service',
    { CLERK_API_URL: html.url, CLERK_FAPI_URL: html.url, KV_REST_API_URL: html.url },
    [
      ['failure', 'secret key', 'the Backend API does not return a key set'],
      ['failure', 'publishable key', "the instance's Frontend API does not return a key set"],
      ['failure', 'cache', 'the response is not that of a KV store (SyntaxError)'],
      ['failure', 'service', 'another server responds (200, text/html)'],
    ],
    html.url,
  ],
  [
    'no migration is applied',
    await roleOn(notMigrated, ''),
    [
      ['failure', 'migrations', 'pending: 20261120000000_create_users'],
      ['failure', 'registration', 'a table or a function of the service does not exist (42P01)'],
    ],
  ],
  [
    'the role may not read the table of applied migrations',
    await roleOn(database, 'GRANT SELECT, INSERT ON users, tenants TO $role'),
    [['warning', 'migrations', 'the role may not read _prisma_migrations']],
  ],
  [
    'the quota of the cache is used up, and the store rejects the whole HTTP request',
    { KV_REST_API_URL: rejecting.url },
    [['failure', 'cache', "the quota of the store's plan is used up"]],
  ],
  [
    'the deployed service has only the first of two signing secrets',
    { IDP_WEBHOOK_SIGNING_SECRET: `${SIGNING_SECRET} ${OTHER_SECRET}` },
    [['failure', 'service webhook', 'rejects an event that is signed with signing secret 2']],
    service.url,
  ],
  [
    'another service accepts every request',
    {},
    [
      ['warning', 'service ready', 'ready, but the cache of the service does not respond'],
      ['failure', 'service guard', 'a request with no session gets a 200 instead of a 401'],
      ['failure', 'service forgery', 'a forged event gets a 200 instead of a 400'],
      ['failure', 'service headers', 'a request with an invalid token gets a 200 instead of a 401'],
    ],
    agreeing.url,
  ],
  [
    'the deployed service has no database and other headers',
    {},
    [
      ['failure', 'service ready', 'the database of the service does not respond'],
      ['failure', 'service webhook', 'rejects an event that is signed with signing secret 1'],
      ['warning', 'service headers', 'x-powered-by, strict-transport-security, x-content-type-options'],
    ],
    broken.url,
  ],
];

test.each(cases)(
  'The checks of the doctor report exactly the expected problems if %s',
  async (_description, changes, expected, origin) => {
    expect(await runChecksHere(changes, origin)).toEqual(matching(expected));
  },
);

test('The doctor requires rights on the webhook tables only if the application has event handlers', async () => {
  expect(await runChecksHere({}, undefined, true)).toEqual(
    matching([['failure', 'webhook handlers', 'the role may not write the tables of webhook events']]),
  );
  const tables = 'webhook_messages, webhook_subjects, pending_deletions';
  const rights = `${USUAL_RIGHTS}; GRANT SELECT, INSERT, UPDATE, DELETE ON ${tables} TO $role; GRANT INSERT (operation) ON link_changes TO $role`;
  expect(await runChecksHere(await roleOn(database, rights), undefined, true)).toEqual([]);
});

test('Without --json, the doctor command prints a line for each check, and the remedy below each problem', async () => {
  const environment = { ...valid, KV_REST_API_TOKEN: 'hidden-token', IDP_JWT_KEY: '' };
  const { exit, stdout, stderr } = await runCommand('doctor', [], environment);
  expect({ exit, stderr }).toEqual({ exit: 1, stderr: '' });
  expect(stdout).toMatch(/^warning {2}JWT key {10}it is not set.*\n +-> Set IDP_JWT_KEY to it$/m);
  expect(stdout).toMatch(/^FAILURE {2}cache {12}the store rejects KV_REST_API_TOKEN\n +-> Copy both/m);
  expect(stdout).toMatch(/\n\n\d+ ok, 1 warning, 1 failed, 0 skipped\n$/);
  expect(stdout).not.toContain('\x1b');
  for (const secret of secretsOf(environment)) expect(stdout).not.toContain(secret);
});

test.each([
  ['--url=http://app.example.com', 'Invalid --url: use an https:// URL'],
  ['--url=https://me:hidden@app.example.com', 'use an origin only'],
  ['--url=https://app.example.com/users', 'use an origin only'],
])(
  'The doctor command exits with 2 for the invalid option %s and does not print a password',
  async (option, words) => {
    const { exit, stdout, stderr } = await runCommand('doctor', ['--json', option], valid);
    expect({ exit, stdout }).toEqual({ exit: 2, stdout: '' });
    expect(stderr).toContain(words);
    expect(stderr).not.toContain('hidden');
  },
);
