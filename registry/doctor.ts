import { createHmac, createPublicKey, randomBytes, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { Kind } from './linking/links';
import { findSteps, MATCHER } from './steps';

/**
 * `npx tsx --conditions=react-server <this file> [<path of a guarded GET route>...] [user_<id of a Clerk user>] [org_<id>]
 * [webhook:<path or URL of your own route for user.created> [--deliver]]` prints the next step of the installation. If there is
 * none, checks the running application at APPLICATION_URL (default http://localhost:3000). Links a made-up user and deletes it, or
 * links the given Clerk user. With --deliver, your own route gets the event of the user. Exits with 1 if something is left to do.
 */
for (const file of ['.env.local', '.env']) if (existsSync(file)) process.loadEnvFile(file);
const env = process.env;
const url = (env['APPLICATION_URL'] ?? 'http://localhost:3000').replace(/\/$/, '');
const given = process.argv.slice(2);
const routes = given.filter((argument) => argument.startsWith('/'));
const madeUp = `user_doctor_${randomUUID()}`;
const isDelivered = given.includes('--deliver');
const ownWebhook = given.find((argument) => argument.startsWith('webhook:'))?.slice('webhook:'.length);
const [REGISTER, WEBHOOK] = ['/auth/v1/register', '/webhooks/idp/v1/user-created'] as const;
const hook = ownWebhook ?? WEBHOOK;
const isThere = (file: string) => ['', 'src/'].some((root) => existsSync(root + file));
const isInstalled = (route: string) => isThere(`app${route}/route.ts`);
const proxy =
  ['proxy.ts', 'middleware.ts'].flatMap((name) => [name, `src/${name}`]).find(existsSync) ?? 'proxy.ts';

const USE = 'export default withIdentityLink(<the arguments of clerkMiddleware>);';
const remedyFor = (route: string) =>
  /^\/(auth|webhooks\/idp)\/v1\//.test(route) ? USE : 'In the handler, return early for this route.';
const COLUMNS = 'Columns without a default need otherColumns() in identity-link.config.ts.';
const CONFIG = 'Use createClerkClient of @clerk/backend. Check CLERK_SECRET_KEY, DATABASE_URL and the names.';

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
    // Prisma's messages end with the cause.
    console.log(`${isTried ? 'FAILURE ' : 'not tried'} ${name}: ${message?.split('\n').at(-1)}`);
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
  const response = await fetch(address, { redirect: 'manual', signal: timeout(), ...init }).catch((error) => {
    throw new Finding(
      `no response (${error.cause ?? error.message}).`,
      'Start the application, or set APPLICATION_URL.',
    );
  });
  const { status, headers } = response;
  const reason = headers.get('x-clerk-auth-reason') ?? '';
  const location = headers.get('location') ?? '';
  if (status >= 300 && status < 400) {
    const { origin, pathname } = new URL(location, address);
    const [from, to] = [address.pathname, pathname].map((path) => path.replace(/\/$/, ''));
    if (pathname === address.pathname)
      throw new Finding(`${status} to the same path, ${location}.`, `Set APPLICATION_URL to ${origin}.`);
    if (from === to) return send(new URL(pathname, address).href, init);
    throw new Finding(
      `${status} to ${location}: the handler in ${proxy} or next.config redirects.`,
      remedyFor(route),
    );
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
  const isLocal = reason === 'token-invalid-signature';
  if (env['CLERK_JWT_KEY'] && !isLocal)
    throw new Finding(
      `the middleware does not use CLERK_JWT_KEY (${reason || 'no token'}). In ${proxy}:`,
      USE,
    );
  return isLocal ? '' : '(the keys come from Clerk: set CLERK_JWT_KEY to avoid the call)';
}

const fetchFromClerk = (path: string) =>
  fetch(`${env['CLERK_API_URL'] ?? 'https://api.clerk.com'}${path}`, {
    headers: { authorization: `Bearer ${env['CLERK_SECRET_KEY']}` },
    signal: timeout(),
  }).catch((error: Error) => {
    throw notTried(`Clerk does not respond (${error.message}).`);
  });

async function checkKey() {
  const pem = env['CLERK_JWT_KEY']?.replaceAll('\\n', '\n');
  if (!pem) throw notTried('CLERK_JWT_KEY is not set. It is optional.');
  const own = createPublicKey(pem).export({ format: 'jwk' }).n;
  const response = await fetchFromClerk('/v1/jwks');
  if (response.status !== 200) throw new Finding(`Clerk rejects CLERK_SECRET_KEY (${response.status}).`);
  const { keys }: { keys: { n?: string }[] } = await response.json();
  if (!keys.some(({ n }) => n === own)) throw new Finding('the instance of CLERK_SECRET_KEY has other keys.');
}

function deliver(data: object, isSigned = true) {
  const body = JSON.stringify({ type: 'user.created', object: 'event', data });
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
  const { status, path } = await deliver({ id: madeUp }, false);
  if (ownWebhook && [401, 403].includes(status)) throw notTried(`${status} by your route or by ${proxy}.`);
  if (status !== 400) throw new Finding(`${status} instead of 400.`, 'The log has the error.');
  return `(in Clerk, the endpoint is https://<your domain>${path})`;
}

async function checkWebhook(user: string, count: () => Promise<number>) {
  if (!ownWebhook && !isInstalled(WEBHOOK)) throw notTried('it is not installed here.');
  const before = await count();
  if (ownWebhook && (!isDelivered || before || user === madeUp))
    throw notTried('your route may send emails. Pass --deliver, and a user_… that has no row.');
  const data = ownWebhook ? await (await fetchFromClerk(`/v1/users/${user}`)).json() : { id: user };
  const { status } = await deliver(data);
  if (status === 400) throw new Finding('the application has another signing secret than this command.');
  if (status >= 300) throw new Finding(`${status} instead of 200.`, 'The log has the error.');
  if (before) return '(it existed before)';
  if (await count()) return;
  throw new Finding(
    'there is no row.',
    'The route does not call registerByIdentityProviderUserId, or the application has another database than this command.',
  );
}

/** Checks the table of a kind by registrations, and for users by webhooks. */
async function checkLinks(kind: Kind) {
  const id = given.find((argument) => argument.startsWith(kind === 'user' ? 'user_' : 'org_')) ?? madeUp;
  let columns: object | undefined;
  const config = check(`identity-link.config.ts names the table of each ${kind}, and fills it`, async () => {
    try {
      const { findLink, tableOf } = await import('./linking/links');
      await findLink(kind, id);
      columns = await tableOf(kind).otherColumns(id);
    } catch (error) {
      throw new Finding((error instanceof Error && error.message) || `${error}`, CONFIG);
    }
    if (columns === undefined) throw notTried(`${id} gets no row. Pass another user_… or org_….`);
  });
  if (!(await config)) return;
  const { tableOf } = await import('./linking/links');
  const { register } = await import('./register');
  const { sqlStateOf } = await import('./base/sql-state');
  const { model, id: internalId, clerkId } = tableOf(kind);
  const row = { [clerkId]: id };
  const same = { where: row, update: row, create: { ...row, ...columns }, select: { [internalId]: true } };
  const unique = new Finding(`the column ${clerkId} has no unique key.`, 'Add @unique, and migrate.');
  const count = async () => model.count({ where: row });
  const remove = async () => id === madeUp && (await model.deleteMany({ where: row }));
  const checkRegistrations = async () => {
    const before = await count();
    const all = await Promise.allSettled(Array.from({ length: 20 }, () => register(kind, id)));
    if ((await count()) > 1) throw unique;
    for (const one of all)
      if (one.status === 'rejected')
        throw new Finding(`${one.reason.message} ${one.reason.cause ?? ''}`, COLUMNS);
    // Changes nothing, in one statement that PostgreSQL rejects without a unique key.
    await model.upsert(same).then(undefined, (error: unknown) => {
      throw sqlStateOf(error) === '42P10' ? unique : error;
    });
    const created = all.filter((one) => one.status === 'fulfilled' && one.value?.created).length;
    if (before) return '(it existed before)';
    if (created !== 1) throw new Finding(`insert() returned a row in ${created} calls instead of one.`);
    return '';
  };
  const registrations = () =>
    check(`twenty registrations of a ${kind} at once leave one row, by a unique key`, checkRegistrations);
  const webhook = () => kind === 'tenant' || check('a webhook links a user', () => checkWebhook(id, count));
  const [first, second] = isDelivered ? [webhook, registrations] : [registrations, webhook];
  try {
    if (!(await first())) return;
    await remove();
    await second();
  } finally {
    await remove();
  }
}

async function main() {
  const [next] = findSteps('.');
  if (next) {
    console.log(['NEXT STEP', ...next.places, ...next.lines].join('\n          '));
    console.log('Or write above the line: // identity-link: <reason>. Then run this command again.');
    process.exitCode = 1;
    return;
  }
  console.log(
    'ok        the files. Not seen: raw SQL, connectOrCreate, renamed delegates, other repositories.',
  );
  await check('CLERK_JWT_KEY belongs to the instance', checkKey);
  if (isInstalled(REGISTER))
    await check(`${REGISTER} rejects an invalid session`, () => checkRejection(REGISTER, 'POST'));
  for (const route of routes)
    await check(`${route} rejects an invalid session`, () => checkRejection(route, 'GET'));
  await check(`${hook} rejects a wrong signature`, checkForgery);
  await checkLinks('user');
  if (isThere('lib/identity-link/guard-tenant.ts')) await checkLinks('tenant');
}

void main()
  .catch((error: unknown) => {
    console.log('FAILURE ', error);
    process.exitCode = 1;
  })
  // Ends although the pool of the application's client has open connections.
  .finally(() => process.exit());
