import { createPublicKey, randomBytes, randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import {
  connect,
  countLinks,
  deleteLinks,
  deliver,
  REGISTER,
  send,
  url,
  userCreated,
  WEBHOOK,
} from './application.mjs';

/**
 * `node scripts/identity-link/doctor.mjs [<path of a guarded GET route>...]` checks the changes that shadcn cannot make, and
 * prints missing lines. Reads .env.local and .env. Requests the running application at APPLICATION_URL (default
 * http://localhost:3000), links a test user in its database and deletes that user. Exits with 1 if a check fails.
 */
const PREFIX = 'identity-link-doctor-';
const root = existsSync('src/lib/identity-link') ? 'src/' : '';
const inRoot = (file) => existsSync(`${root}${file}`);
const hasCache = inRoot('lib/identity-link/kv.ts');
const read = (file) => readFileSync(`${root}${file}`, 'utf8');

/** A problem and the lines that solve it. */
class Problem extends Error {
  constructor(message, ...remedy) {
    super(message);
    this.remedy = remedy;
  }
}

/** Runs a check and prints the result. Resolves to true if the check passes. */
async function check(name, run) {
  try {
    await run();
    console.log(`ok       ${name}`);
    return true;
  } catch (error) {
    process.exitCode = 1;
    console.log(`FAILURE  ${name}: ${error.message}`);
    for (const line of error.remedy ?? []) console.log(`         ${line}`);
    return false;
  }
}

const isPublicKey = (pem) => {
  try {
    return createPublicKey(pem).asymmetricKeyType === 'rsa';
  } catch {
    return false;
  }
};
const VARIABLES = {
  DATABASE_URL: [(value) => URL.canParse(value), 'postgresql://…'],
  CLERK_SECRET_KEY: [(value) => /^sk_(test|live)_/.test(value), 'sk_…'],
  NEXT_PUBLIC_CLERK_PUBLISHABLE_KEY: [(value) => /^pk_(test|live)_/.test(value), 'pk_…'],
  CLERK_JWT_KEY: [isPublicKey, '"-----BEGIN PUBLIC KEY----- … -----END PUBLIC KEY-----"'],
  CLERK_WEBHOOK_SIGNING_SECRET: [(value) => /^whsec_[\w+/=-]{16,}$/.test(value), 'whsec_…'],
  ...(hasCache
    ? {
        KV_REST_API_URL: [(value) => URL.canParse(value), 'https://…'],
        KV_REST_API_TOKEN: [(value) => value !== '', '…'],
      }
    : {}),
};

function checkVariables() {
  const invalid = Object.entries(VARIABLES).filter(([name, [isValid]]) => !isValid(process.env[name] ?? ''));
  if (invalid.length === 0) return;
  const lines = invalid.map(([name, [, example]]) => `${name}=${example}`);
  throw new Problem('missing or invalid variables. Set in .env.local, and where you deploy:', ...lines);
}

/** Returns the paths of the files below a folder, without packages and hidden folders. */
const filesBelow = (folder) =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const file = path.posix.join(folder, entry.name);
    if (!entry.isDirectory()) return [file];
    return entry.name === 'node_modules' || entry.name.startsWith('.') ? [] : filesBelow(file);
  });
const filesWith = (pattern, text) =>
  filesBelow('.').filter((file) => pattern.test(file) && readFileSync(file, 'utf8').includes(text));

function checkClient() {
  const [, from = ''] = /from '(.+)'/.exec(read('lib/identity-link/prisma.ts')) ?? [];
  // Checks only a relative import. For any other import, the build of the application reports a missing module.
  if (!from.startsWith('.')) return;
  const module = path.posix.join('lib/identity-link', from);
  if (['.ts', '.tsx', '.js', '/index.ts'].some((extension) => inRoot(`${module}${extension}`))) return;
  const [client] = filesWith(/\.[jt]sx?$/, 'new PrismaClient(').filter((file) => !file.includes('generated'));
  const target = client && path.posix.relative(`${root}lib/identity-link`, client).replace(/\.[jt]sx?$/, '');
  throw new Problem(
    `${root}${module}.ts does not exist. Export your Prisma client in ${root}lib/identity-link/prisma.ts:`,
    `export { prisma } from '${target ?? '<module of your client>'}';`,
  );
}

function checkModel() {
  const generated = [...filesBelow('.'), 'node_modules/.prisma/client/index.d.ts'].filter(existsSync);
  const knowsModel = (file) =>
    file.endsWith('.ts') && readFileSync(file, 'utf8').includes('get identityLink()');
  if (generated.some(knowsModel)) return;
  const [, schema = 'prisma/schema.prisma'] = existsSync('prisma.config.ts')
    ? (/schema: *['"](.+?)['"]/.exec(readFileSync('prisma.config.ts', 'utf8')) ?? [])
    : [];
  const isMissing =
    schema.endsWith('.prisma') && !readFileSync(schema, 'utf8').includes('model IdentityLink');
  throw new Problem(
    'the Prisma client does not have the model IdentityLink. Run:',
    ...(isMissing ? [`cat prisma/identity-link.prisma >> ${schema} && rm prisma/identity-link.prisma`] : []),
    'npx prisma generate',
  );
}

async function checkMigration(client) {
  const { rows } = await client.query(`SELECT indisunique FROM pg_index, pg_attribute
    WHERE indrelid = to_regclass('identity_links') AND indisunique AND indisvalid AND indpred IS NULL AND indnatts = 1
      AND attrelid = indrelid AND attnum = indkey[0] AND attname = 'identity_provider_user_id'`);
  if (rows.length > 0) return;
  const exists = (await client.query(`SELECT to_regclass('identity_links') AS name`)).rows[0].name !== null;
  if (!exists)
    throw new Problem('the table identity_links does not exist. Run:', 'npx prisma migrate deploy');
  throw new Problem(
    'the column identity_provider_user_id has no unique key, so a user can get two ids. Keep one link of each user, and run:',
    'CREATE UNIQUE INDEX ON identity_links (identity_provider_user_id);',
  );
}

const file =
  ['proxy.ts', 'middleware.ts'].map((name) => `${root}${name}`).find(existsSync) ?? `${root}proxy.ts`;
const PROTECTED = inRoot('lib/identity-link/middleware.ts')
  ? [
      "import { withIdentityLink } from './lib/identity-link/middleware';",
      'export default withIdentityLink(<the arguments of clerkMiddleware>);',
    ]
  : [
      `const isOwn = createRouteMatcher(['${REGISTER}', '${WEBHOOK}']);`,
      'clerkMiddleware((auth, request) => { if (isOwn(request)) return; <your handler> }, <your options>)',
    ];
const JWT_KEY = inRoot('lib/identity-link/middleware.ts')
  ? PROTECTED
  : ['clerkMiddleware(<your handler>, { jwtKey: process.env.CLERK_JWT_KEY })'];

/** Throws if the middleware has responded instead of the route, or if the route does not exist. */
function requireOwnResponse(route, { status, headers }) {
  const reason = headers.get('x-clerk-auth-reason') ?? '';
  if ((status >= 300 && status < 400) || reason.startsWith('protect'))
    throw new Problem(`the middleware protects ${route}. In ${file}:`, ...PROTECTED);
  if (status === 404) throw new Problem(`${route} does not exist (404)`, `Check the files below ${root}app.`);
}

/**
 * Sends a session token with an invalid signature and an unknown key id (`kid`). If the middleware uses CLERK_JWT_KEY, the 401
 * has the reason `token-invalid-signature`. Otherwise, the middleware finds no key for the `kid` and gives another reason.
 */
async function checkSession(route, method) {
  const now = Math.floor(Date.now() / 1000);
  const token = [
    Buffer.from(JSON.stringify({ alg: 'RS256', typ: 'JWT', kid: 'identity-link-doctor' })),
    Buffer.from(
      JSON.stringify({
        sub: 'user_doctor',
        sid: 'sess_doctor',
        iss: 'https://doctor',
        iat: now,
        exp: now + 60,
      }),
    ),
    randomBytes(256),
  ].map((part) => part.toString('base64url'));
  const response = await send(route, { method, headers: { authorization: `Bearer ${token.join('.')}` } });
  requireOwnResponse(route, response);
  if (response.status === 500)
    throw new Problem(
      `500 instead of 401: clerkMiddleware does not run for ${route}. In ${file}:`,
      "export const config = { matcher: '/((?!_next/).*)' };",
    );
  if (response.status !== 401)
    throw new Problem(`${response.status} instead of 401`, 'Wrap the handler in guard().');
  const reason = response.headers.get('x-clerk-auth-reason') ?? 'no reason';
  if (reason !== 'token-invalid-signature')
    throw new Problem(`the middleware does not use CLERK_JWT_KEY (${reason}). In ${file}:`, ...JWT_KEY);
}

async function checkWebhook() {
  const response = await deliver('{}', {});
  requireOwnResponse(WEBHOOK, response);
  if (response.status !== 400)
    throw new Problem(`${response.status} instead of 400 for a webhook without a signature`);
}

async function checkLink(client) {
  const user = `${PREFIX}${randomUUID()}`;
  try {
    const { status } = await deliver(userCreated(user));
    if (status === 400)
      throw new Problem('the application has another CLERK_WEBHOOK_SIGNING_SECRET than this command');
    if (status !== 200)
      throw new Problem(`${status} instead of 200. The log of the application has the error.`);
    if ((await countLinks(client, user)) === 0)
      throw new Problem('the application has another DATABASE_URL than this command');
  } finally {
    await deleteLinks(client, PREFIX).catch(() => undefined);
  }
}

function checkCache() {
  if (!read('lib/identity-link/user-id.ts').includes('./user-id-cache'))
    throw new Problem('the cache is not used. Install the item identity-link-cache again, with --overwrite.');
}

async function checkRunning() {
  await send('/').catch(() => {
    throw new Problem(
      'no response. Start the application, or set APPLICATION_URL in .env.local, and run this command again.',
    );
  });
}

const sessionOn = (route) => `response of ${route} to an invalid session`;

/** Checks the running application. Resolves to true if it can link a user. */
async function checkApplication(client) {
  if (!(await check(`application at ${url}`, checkRunning))) return false;
  await check(sessionOn(REGISTER), () => checkSession(REGISTER, 'POST'));
  for (const route of process.argv.slice(2)) await check(sessionOn(route), () => checkSession(route, 'GET'));
  const isReachable = await check('webhook', checkWebhook);
  return isReachable && client !== undefined && (await check('link', () => checkLink(client)));
}

await check('variables', checkVariables);
let client;
await check('database', async () => {
  client = await connect();
});
if (client) await check('migration', () => checkMigration(client));
if (hasCache) await check('cache', checkCache);
if (!(await checkApplication(client))) {
  await check('prisma client', checkClient);
  await check('prisma model', checkModel);
}
await client?.end();
