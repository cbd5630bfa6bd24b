import { createHmac, createPublicKey, randomBytes, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';

/**
 * `npx tsx --conditions=react-server <this file> [<path of a guarded GET route>...] [user_<id of a Clerk user>]
 * [webhook:<path of your own route for user.created>]` checks the installation in the running application at APPLICATION_URL
 * (default http://localhost:3000). Links two made-up users and deletes them. Exits with 1 if a check fails.
 */
for (const file of ['.env.local', '.env']) if (existsSync(file)) process.loadEnvFile(file);
const env = process.env;
const url = (env['APPLICATION_URL'] ?? 'http://localhost:3000').replace(/\/$/, '');
const PREFIX = 'user_doctor_';
const given = process.argv.slice(2);
const routes = given.filter((argument) => argument.startsWith('/'));
const realUser = given.find((argument) => argument.startsWith('user_'));
const ownWebhook = given.find((argument) => argument.startsWith('webhook:'))?.slice('webhook:'.length);
const [REGISTER, WEBHOOK] = ['/auth/v1/register', ownWebhook ?? '/webhooks/idp/v1/user-created'] as const;
const proxy =
  ['proxy.ts', 'middleware.ts'].flatMap((name) => [name, `src/${name}`]).find(existsSync) ?? 'proxy.ts';

const STATIC = 'html?|css|js(?!on)|jpe?g|webp|png|gif|svg|ttf|woff2?|ico|csv|docx?|xlsx?|zip|webmanifest';
const MATCHER = [
  'export const config = { matcher: [',
  `  '/((?!_next|[^?]*\\\\.(?:${STATIC})).*)',`,
  "  '/(api|trpc|auth/v1|webhooks/idp)(.*)', // and your guarded paths",
  '] };',
];
const USE = 'export default withIdentityLink(<the handler and options of clerkMiddleware>);';
const remedyFor = (route: string) =>
  /^\/(auth|webhooks\/idp)\/v1\//.test(route) ? USE : 'In the handler, return early for this route.';
const SEE_LOG = 'The log has the error. Columns without a default need otherColumns() in linking/links.ts.';

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
  const response = await fetch(url + route, { redirect: 'manual', signal: timeout(), ...init });
  const { status, headers } = response;
  const reason = headers.get('x-clerk-auth-reason') ?? '';
  const location = headers.get('location') ?? '';
  if (status >= 300 && status < 400) {
    const { origin, pathname, searchParams } = new URL(location, url);
    if (pathname === `${route}/` || `${pathname}/` === route) return send(pathname, init);
    if (pathname === route)
      throw new Finding(`${status} to the same path, ${location}.`, `Set APPLICATION_URL to ${origin}.`);
    const isLocale = pathname.replace(/\/$/, '').endsWith(route.replace(/\/$/, ''));
    const isSignIn = /(?:sign|log)-?in|handshake/.test(pathname) || searchParams.has('redirect_url');
    const cause = isLocale ? 'adds a locale' : isSignIn ? 'asks for a sign-in' : 'or next.config redirects';
    throw new Finding(`${status} to ${location}: the handler in ${proxy} ${cause}.`, remedyFor(route));
  }
  if (status === 404 && reason.startsWith('protect'))
    throw new Finding(`404 by auth.protect() in ${proxy}.`, remedyFor(route));
  if (status === 404) throw new Finding('404: the route does not exist.', 'Your own: webhook:/<path>.');
  return { status, body: await response.text(), reason, path: route };
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
  return send(WEBHOOK, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body });
}

async function checkForgery() {
  const { status, path } = await deliver(`${PREFIX}${randomUUID()}`, false);
  if (ownWebhook && [401, 403].includes(status)) throw notTried(`${status} by your route or by ${proxy}.`);
  if (status !== 400) throw new Finding(`${status} instead of 400.`, SEE_LOG);
  return `(in Clerk, the endpoint is https://<your domain>${path})`;
}

async function checkLinks() {
  const { users, CLERK_ID, findLink } = await import('./linking/links');
  const count = (user: string) => users().count({ where: { [CLERK_ID]: user } });
  await check('linking/links.ts names a model, its id and its unique column', () => findLink(PREFIX));
  const [first, second] = [realUser ?? `${PREFIX}${randomUUID()}`, `${PREFIX}${randomUUID()}`] as const;
  try {
    const isLinked = await check('twenty webhooks of a user at once leave one row', async () => {
      if (ownWebhook) throw notTried('your own route may send emails. Create a user in Clerk instead.');
      const before = await count(first);
      const replies = await Promise.all(Array.from({ length: 20 }, () => deliver(first)));
      const failed = replies.find(({ status }) => status !== 200);
      if (failed?.status === 400)
        throw new Finding('the application has another signing secret than this command.');
      const realOne = realUser ? [] : ['If the application asks Clerk for the user, pass a real one: user_…'];
      if (failed) throw new Finding(`${failed.status} instead of 200.`, SEE_LOG, ...realOne);
      const rows = await count(first);
      if (!rows) throw new Finding('no row: the application has another database than this command.');
      if (rows > 1) throw new Finding(`${rows} rows: the column ${CLERK_ID} needs a unique key.`);
      return before ? '(it existed before)' : '';
    });
    await check(`the column ${CLERK_ID} has a unique key`, async () => {
      if (!isLinked || realUser) throw notTried('needs two made-up users.');
      await deliver(second);
      if ((await count(second)) === 0) throw notTried('the second made-up user was not linked.');
      const update = users().updateMany({ where: { [CLERK_ID]: second }, data: { [CLERK_ID]: first } });
      const isPossible = await update.catch((error: { code?: string }) => {
        if (error.code !== 'P2002') throw error;
      });
      if (isPossible) throw new Finding('two rows have the same value. Add @unique, and migrate.');
      return '(Prisma may print the violation)';
    });
  } finally {
    const own = [first, second].filter((user) => user.startsWith(PREFIX));
    await users().deleteMany({ where: { [CLERK_ID]: { in: own } } });
  }
}

async function main() {
  await check('CLERK_JWT_KEY belongs to the instance', checkKey);
  const ping = () => fetch(url + REGISTER, { redirect: 'manual', signal: timeout() }).then(() => '');
  if (!(await check(`the application responds at ${url}`, ping))) return;
  await check(`${REGISTER} rejects an invalid session`, () => checkRejection(REGISTER, 'POST'));
  for (const route of routes)
    await check(`${route} rejects an invalid session`, () => checkRejection(route, 'GET'));
  if (!(await check(`${WEBHOOK} rejects a wrong signature`, checkForgery)) && !ownWebhook) return;
  await checkLinks();
}

void main()
  .catch((error: unknown) => {
    console.log('FAILURE  linking/links.ts (import @clerk/nextjs only inside otherColumns):', error);
    process.exitCode = 1;
  })
  // Ends although the pool of the application's client has open connections.
  .finally(() => process.exit());
