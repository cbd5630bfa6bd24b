import { createHmac, createPublicKey, randomBytes, randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';

/**
 * `npx tsx --conditions=react-server <this file> [<path of a guarded GET route>...] [user_<id of a Clerk user>]
 * [webhook:<path or URL of your own route for user.created>]` checks the installation in the running application at
 * APPLICATION_URL (default http://localhost:3000). Links a made-up user and deletes it, or links the given Clerk user. Exits with 1
 * if a check fails.
 */
for (const file of ['.env.local', '.env']) if (existsSync(file)) process.loadEnvFile(file);
const env = process.env;
const url = (env['APPLICATION_URL'] ?? 'http://localhost:3000').replace(/\/$/, '');
const given = process.argv.slice(2);
const routes = given.filter((argument) => argument.startsWith('/'));
const realUser = given.find((argument) => argument.startsWith('user_'));
const madeUpUser = `user_doctor_${randomUUID()}`;
const ownWebhook = given.find((argument) => argument.startsWith('webhook:'))?.slice('webhook:'.length);
const [REGISTER, WEBHOOK] = ['/auth/v1/register', '/webhooks/idp/v1/user-created'] as const;
const hook = ownWebhook ?? WEBHOOK;
const isInstalled = (route: string) => ['', 'src/'].some((root) => existsSync(`${root}app${route}/route.ts`));
const proxy =
  ['proxy.ts', 'middleware.ts'].flatMap((name) => [name, `src/${name}`]).find(existsSync) ?? 'proxy.ts';

const STATIC = 'html?|css|js(?!on)|jpe?g|webp|png|gif|svg|ttf|woff2?|ico|csv|docx?|xlsx?|zip|webmanifest';
const MATCHER = [
  'export const config = { matcher: [',
  `  '/((?!_next|[^?]*\\\\.(?:${STATIC})).*)',`,
  "  '/__clerk/(.*)',",
  "  '/(api|trpc|<start of each guarded path>)(.*)',",
  '] };',
];
const USE = 'export default withIdentityLink(<the arguments of clerkMiddleware>);';
const remedyFor = (route: string) =>
  /^\/(auth|webhooks\/idp)\/v1\//.test(route) ? USE : 'In the handler, return early for this route.';
const COLUMNS = 'Columns without a default need otherColumns() in identity-link.config.ts.';

/** What is wrong, and the lines that solve it. With `isTried: false`, the check could not run. */
class Finding extends Error {
  readonly remedy: string[];
  isTried = true;
  constructor(message: string, ...remedy: string[]) {
    super(message);
    this.remedy = remedy;
  }
}
const timeout = () => AbortSignal.timeout(60_000); // `next dev` compiles a route on its first request
const notTried = (message: string) => Object.assign(new Finding(message), { isTried: false });

async function check(name: string, run: () => Promise<unknown>): Promise<boolean> {
  try {
    console.log(['ok       ', name, await run()].filter(Boolean).join(' '));
    return true;
  } catch (error) {
    const { message, remedy = [], isTried = true }: Partial<Finding> = error instanceof Error ? error : {};
    if (isTried) process.exitCode = 1;
    console.log(`${isTried ? 'FAILURE ' : 'not tried'} ${name}: ${message}`);
    for (const line of remedy) console.log(`          ${line}`);
    return false;
  }
}

/** Sends a request to a route. Follows only a redirect to the same path with or without a slash at the end. */
async function send(
  route: string,
  init: RequestInit,
): Promise<{ status: number; body: string; reason: string; path: string }> {
  const address = new URL(route.startsWith('/') ? url + route : route);
  const response = await fetch(address, { redirect: 'manual', signal: timeout(), ...init });
  const { status, headers } = response;
  const reason = headers.get('x-clerk-auth-reason') ?? '';
  const location = headers.get('location') ?? '';
  if (status >= 300 && status < 400) {
    const { origin, pathname, searchParams } = new URL(location, address);
    const [from, to] = [address.pathname, pathname].map((path) => path.replace(/\/$/, ''));
    if (pathname === address.pathname)
      throw new Finding(`${status} to the same path, ${location}.`, `Set APPLICATION_URL to ${origin}.`);
    if (from === to) return send(new URL(pathname, address).href, init);
    const isLocale = to?.endsWith(from ?? '');
    const isSignIn = /(?:sign|log)-?in|handshake/.test(pathname) || searchParams.has('redirect_url');
    const cause = isLocale ? 'adds a locale' : isSignIn ? 'asks for a sign-in' : 'or next.config redirects';
    throw new Finding(`${status} to ${location}: the handler in ${proxy} ${cause}.`, remedyFor(route));
  }
  if (status === 404 && reason.startsWith('protect'))
    throw new Finding(`404 by auth.protect() in ${proxy}.`, remedyFor(route));
  if (status === 404) throw new Finding('404: the route does not exist.');
  return { status, body: await response.text(), reason, path: address.pathname };
}

/** Sends a well-formed session token with a wrong signature. */
async function checkRejection(route: string, method: string) {
  const now = Math.floor(Date.now() / 1000);
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  const claims = { sub: 'user_doctor', sid: 'sess_doctor', iss: 'https://doctor', iat: now, exp: now + 60 };
  const signed = `${encode({ alg: 'RS256', typ: 'JWT', kid: 'ins_doctor' })}.${encode(claims)}`;
  const headers = { authorization: `bearer  ${signed}.${randomBytes(256).toString('base64url')}` };
  const { status, body, reason } = await send(route, { method, headers });
  if (status === 500)
    throw new Finding(`500: see the log, or clerkMiddleware does not run for it. In ${proxy}:`, ...MATCHER);
  if (status !== 401) throw new Finding(`${status} instead of 401.`, 'Wrap the handler in guard().');
  if (!body.startsWith('{"message"'))
    throw new Finding(`the 401 is not from guard(), but from the handler in ${proxy}.`, remedyFor(route));
  const file = new URL('a.css', url + route.replace(/\/$/, ''));
  if ((await fetch(file, { headers, redirect: 'manual', signal: timeout() })).status === 500)
    throw new Finding(`500 for ${file.pathname}, as for a static file. In ${proxy}:`, ...MATCHER);
  const isLocal = reason === 'token-invalid-signature';
  if (env['CLERK_JWT_KEY'] && !isLocal)
    throw new Finding(
      `the middleware does not use CLERK_JWT_KEY (${reason || 'no token'}). In ${proxy}:`,
      USE,
    );
  return isLocal ? '' : '(the keys come from Clerk: set CLERK_JWT_KEY to avoid the call)';
}

async function checkKey() {
  const pem = env['CLERK_JWT_KEY']?.replaceAll('\\n', '\n');
  if (!pem) throw notTried('CLERK_JWT_KEY is not set. It is optional.');
  const own = createPublicKey(pem).export({ format: 'jwk' }).n;
  const response = await fetch(`${env['CLERK_API_URL'] ?? 'https://api.clerk.com'}/v1/jwks`, {
    headers: { authorization: `Bearer ${env['CLERK_SECRET_KEY']}` },
    signal: timeout(),
  }).catch((error: Error) => {
    throw notTried(`Clerk does not respond (${error.message}).`);
  });
  if (response.status !== 200) throw new Finding(`Clerk rejects CLERK_SECRET_KEY (${response.status}).`);
  const { keys }: { keys: { n?: string }[] } = await response.json();
  if (!keys.some(({ n }) => n === own)) throw new Finding('the instance of CLERK_SECRET_KEY has other keys.');
}

function deliver(user: string, isSigned = true) {
  const body = JSON.stringify({ type: 'user.created', object: 'event', data: { id: user } });
  const [id, timestamp] = [`msg_${randomUUID()}`, `${Math.floor(Date.now() / 1000)}`];
  const secrets = env['CLERK_WEBHOOK_SIGNING_SECRET'] ?? env['CLERK_WEBHOOK_SECRET'] ?? '';
  const key = Buffer.from(/^\s*(?:whsec_)?(\S*)/.exec(secrets)?.[1] ?? '', 'base64');
  const signed = `${id}.${timestamp}.${isSigned ? body : ''}`;
  const signature = createHmac('sha256', key).update(signed).digest('base64');
  const headers = { 'svix-id': id, 'svix-timestamp': timestamp, 'svix-signature': `v1,${signature}` };
  return send(hook, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body });
}

async function checkForgery() {
  if (!ownWebhook && !isInstalled(WEBHOOK))
    throw notTried('it is not installed here. Pass your own route as webhook:/<path> or webhook:<URL>.');
  const { status, path } = await deliver(madeUpUser, false);
  if (ownWebhook && [401, 403].includes(status)) throw notTried(`${status} by your route or by ${proxy}.`);
  if (status !== 400) throw new Finding(`${status} instead of 400.`, 'The log has the error.');
  return `(in Clerk, the endpoint is https://<your domain>${path})`;
}

/** Returns the lines of the config for a model of the Prisma schema that has a unique column for Clerk's id. */
function proposedConfig(): string[] {
  const packages = existsSync('../../packages') ? readdirSync('../../packages') : [];
  const folders = ['prisma', ...packages.map((name) => `../../packages/${name}/prisma`)].filter(existsSync);
  const files = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`),
  );
  const schema = files.filter((file) => file.endsWith('.prisma')).map((file) => readFileSync(file, 'utf8'));
  for (const [, model = '', columns = ''] of schema.join('\n').matchAll(/^model (\w+) \{([^}]*)^\}/gm)) {
    const [, id] = /^ *(\w+) .*@id\b/m.exec(columns) ?? [];
    const [, clerkId] = /^ *(\w*clerk\w*) +String\b.*@unique\b/im.exec(columns) ?? [];
    const name = model.charAt(0).toLowerCase() + model.slice(1);
    const lines = [`users = () => prisma.${name}`, `ID = '${id}'`, `CLERK_ID = '${clerkId}'`];
    if (id && clerkId) return lines.map((line) => `export const ${line};`);
  }
  return [];
}

async function checkConfig() {
  try {
    const { findLink } = await import('./linking/links');
    await findLink('user', madeUpUser);
  } catch (error) {
    const clerk = 'This command cannot load @clerk/nextjs/server: use createClerkClient of @clerk/backend.';
    throw new Finding(error instanceof Error ? error.message : `${error}`, ...proposedConfig(), clerk);
  }
}

async function checkLinks() {
  const config = 'identity-link.config.ts names a Prisma client, a model, its id and its unique column';
  if (!(await check(config, checkConfig))) return;
  const { users, ID, CLERK_ID, otherColumns } = await import('../identity-link.config');
  const { registerByIdentityProviderUserId: register } = await import('./register');
  const { sqlStateOf } = await import('./base/sql-state');
  const user = realUser ?? madeUpUser;
  const columns = await otherColumns(user);
  if (columns === undefined)
    return check('registration', () =>
      Promise.reject(notTried('pass the id of a Clerk user, such as user_…')),
    );
  const row = { [CLERK_ID]: user };
  const remove = async () => realUser ?? (await users().deleteMany({ where: row }));
  try {
    await check('twenty registrations of a user at once leave one row', async () => {
      const before = await users().count({ where: row });
      const links = await Promise.all(Array.from({ length: 20 }, () => register(user))).catch((error) => {
        throw new Finding(`${error.message} ${error.cause ?? ''}`, COLUMNS);
      });
      const rows = await users().count({ where: row });
      const created = links.filter((link) => link?.created).length;
      if (rows !== 1) throw new Finding(`${rows} rows: the column ${CLERK_ID} needs a unique key.`);
      if (before) return '(it existed before)';
      if (created !== 1) throw new Finding(`insert() returned a row in ${created} calls instead of one.`);
    });
    await check(`the column ${CLERK_ID} has a unique key`, async () => {
      // Changes nothing, in one statement that PostgreSQL rejects without a unique key.
      const same = { where: row, update: row, create: { ...row, ...columns }, select: { [ID]: true } };
      await users()
        .upsert(same)
        .catch((error: unknown) => {
          throw sqlStateOf(error) === '42P10' ? new Finding('Add @unique, and migrate.') : error;
        });
    });
    await check('a webhook links a user', async () => {
      if (ownWebhook) throw notTried('your own route may send emails. Create a user in Clerk instead.');
      if (!isInstalled(WEBHOOK)) throw notTried('it is not installed here.');
      await remove();
      const before = await users().count({ where: row });
      const { status } = await deliver(user);
      if (status === 400) throw new Finding('the application has another signing secret than this command.');
      if (status !== 200) throw new Finding(`${status} instead of 200.`, 'The log has the error.');
      if (before) return '(it existed before)';
      if (!(await users().count({ where: row })))
        throw new Finding('the application has another database than this command.');
    });
  } finally {
    await remove();
  }
}

async function main() {
  await check('CLERK_JWT_KEY belongs to the instance', checkKey);
  const ping = () => fetch(url, { redirect: 'manual', signal: timeout() }).then(() => '');
  if (!(await check(`the application responds at ${url}`, ping))) return;
  if (isInstalled(REGISTER))
    await check(`${REGISTER} rejects an invalid session`, () => checkRejection(REGISTER, 'POST'));
  for (const route of routes)
    await check(`${route} rejects an invalid session`, () => checkRejection(route, 'GET'));
  await check(`${hook} rejects a wrong signature`, checkForgery);
  await checkLinks();
}

void main()
  .catch((error: unknown) => {
    console.log('FAILURE ', error);
    process.exitCode = 1;
  })
  // Ends although the pool of the application's client has open connections.
  .finally(() => process.exit());
