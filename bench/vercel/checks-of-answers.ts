import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { waitUntil } from '../../dev/system/processes';
import {
  type Answer,
  bearer,
  cookie,
  deliver,
  HOOK,
  ME,
  me,
  REGISTER,
  register,
  send,
  tokenFor,
  userCreated,
} from '../../tests/harness/requests';
import { indiscreetLines, type TestParts } from '../../tests/harness/service';
import type { Deployment } from './deployment';
import type { Check } from './report';

/** How long the platform grants between SIGTERM and the end (its documentation). */
const GRANTED_MILLISECONDS = 500;
/** The pool closes an idle connection after 5 s (lib/db.ts). */
const IDLE_MILLISECONDS = 10_000;

/** Connections of the service to its database. */
export async function connectionsOf({ database, environment }: TestParts): Promise<number> {
  const { username } = new URL(environment['DATABASE_URL'] ?? '');
  const { rowCount } = await database.pool.query('SELECT 1 FROM pg_stat_activity WHERE usename = $1', [
    username,
  ]);
  return rowCount ?? 0;
}

const is = ({ status, body }: Answer, expected: { readonly status: number; readonly body: unknown }) =>
  assert.deepEqual({ status, body }, expected);

const NOT_FOUND = { status: 404, body: { message: 'Not found' } };

/** Other spellings of a guarded route, and addresses of the framework's own. */
const SPELLINGS = [
  '/users/v1/me/',
  '/users/v1/me.segments/_tree.segment.rsc',
  '/users//v1/me',
  '/USERS/v1/me',
  '/users/v1/%6de',
  '/_next/data/build/users/v1/me.json',
  '/api-not-found/users/v1/me',
  '/api-not-found/[[...path]]',
  '/_not-found',
  '/_global-error',
  '/_middleware',
] as const;

/** What a caller may send in the hope that it is taken for the platform's or the middleware's own. */
const FORGED = {
  'x-clerk-auth-status': 'signed-in',
  'x-clerk-auth-token': 'forged',
  'x-clerk-auth-signature': 'forged',
  'x-matched-path': '/health/alive',
  'x-middleware-next': '1',
  'x-middleware-subrequest': 'middleware:middleware:middleware:middleware:middleware',
  'x-middleware-override-headers': 'authorization',
  'x-middleware-request-authorization': 'Bearer forged',
  'x-now-route-matches': '1',
} as const;

/**
 * Checks of one deployment as its callers see it. Where the platform's HTTP server is in a function's sight, the gate
 * (lib/gate.ts) stands in the functions. `name` is part of each user's id.
 */
export function checksOfAnswers(
  { name, hasGate }: { readonly name: string; readonly hasGate: boolean },
  deployment: Deployment,
  parts: TestParts,
): readonly Check[] {
  const { url } = deployment;
  const user = (suffix: string) => `user_${name}_${suffix}`;
  const token = (suffix: string) => tokenFor(parts.idp, user(suffix));
  const registration = deployment.at(REGISTER);
  return [
    {
      title: 'the guard: 401 without a session; with one the id of the row, the second time from the cache',
      async run() {
        const refused = await send(`${url}${ME}`);
        is(refused, { status: 401, body: { message: 'Unauthorized' } });
        const [created, cached] = [await me(url, token('guard')), await me(url, token('guard'))];
        const [row] = await parts.database.rowsOf(user('guard'));
        const body = { isAuthenticated: true, userId: row?.id, identityProviderUserId: user('guard') };
        is(created, { status: 200, body });
        is(cached, { status: 200, body });
        assert.match(cached.headers.get('server-timing') ?? '', /cache;desc=hit/);
        for (const { headers } of [refused, created, cached]) {
          assert.equal(headers.get('cache-control'), 'no-store');
          assert.match(headers.get('x-request-id') ?? '', /./);
          assert.equal(headers.get('x-content-type-options'), 'nosniff');
        }
      },
    },
    {
      title: 'no header of a caller stands for a session',
      async run() {
        for (const address of [ME, `${ME}?__clerk_handshake=x`])
          is(await send(`${url}${address}`, { headers: FORGED }), {
            status: 401,
            body: { message: 'Unauthorized' },
          });
      },
    },
    {
      title: 'register: 201, then 200 with the same id; 400 and 413 in JSON',
      async run() {
        const body = { identityProviderUserId: user('colleague') };
        const [created, again] = [
          await register(url, token('guard'), body),
          await register(url, token('guard'), body),
        ];
        const [row] = await parts.database.rowsOf(user('colleague'));
        is(created, { status: 201, body: { userId: row?.id, ...body } });
        is(again, { status: 200, body: { userId: row?.id, ...body } });
        assert.equal((await register(url, token('guard'), {})).status, 400);
        const tooLarge = await register(url, token('guard'), { padding: 'x'.repeat(17 * 1024) });
        is(tooLarge, { status: 413, body: { message: 'Payload too large' } });
      },
    },
    {
      title:
        'webhook: verified over the exact bytes; 400 for another byte, no signature, no body; 413 above 1 MiB',
      async run() {
        const body = `${userCreated(user('announced'))}\n`;
        is(await deliver(url, body), { status: 200, body: { received: true, eventType: 'user.created' } });
        assert.equal((await parts.database.rowsOf(user('announced'))).length, 1);
        const invalid = { status: 400, body: { message: 'Invalid webhook signature' } };
        is(await deliver(url, body, {}), invalid);
        is(await send(`${url}${HOOK}`, { method: 'POST' }), {
          status: 400,
          body: { message: 'Missing body' },
        });
        is(await deliver(url, 'x'.repeat(2 ** 20 + 1)), {
          status: 413,
          body: { message: 'Payload too large' },
        });
      },
    },
    {
      title: 'pages: signed out, signed in, sent to sign in, moved to within the browser; files of the build',
      async run() {
        for (const address of ['/', '/docs', '/sign-in', '/sign-in/factor-one', '/sign-up']) {
          const { status, body, headers } = await send(`${url}${address}`);
          assert.equal(status, 200, address);
          const [, nonce] = /'nonce-([^']+)'/.exec(headers.get('content-security-policy') ?? '') ?? [];
          assert.ok(nonce && String(body).includes(`nonce="${nonce}"`), `${address}: no script may run`);
        }
        const { body } = await send(url);
        const files = [...String(body).matchAll(/"(\/_next\/static\/[^"]+\.(?:js|css))"/g)].map(
          ([, file]) => file,
        );
        assert.ok(files.length > 0);
        for (const file of files) {
          const { status, headers } = await send(`${url}${file}`);
          assert.equal(status, 200, file);
          assert.match(headers.get('cache-control') ?? '', /immutable/);
        }
        const moved = await send(`${url}/docs?_rsc=1`, { headers: { rsc: '1' } });
        assert.equal(moved.status, 200);
        assert.equal(moved.headers.get('content-type'), 'text/x-component');
        const signedOut = await send(`${url}/account`);
        assert.deepEqual(
          [signedOut.status, signedOut.headers.get('location')],
          [307, '/sign-in?redirect_url=%2Faccount'],
        );
        assert.equal((await send(`${url}/account`, { headers: cookie(token('guard')) })).status, 200);
        assert.equal((await send(`${url}/no-such-page`)).status, 404);
        assert.equal((await send(`${url}/index`)).status, 200);
        assert.equal((await send(`${url}/500`)).status, 500);
        for (const file of ['/robots.txt', '/icon.svg'])
          assert.equal((await send(`${url}${file}`)).status, 200);
      },
    },
    {
      title: 'the document, health, unknown addresses and methods are answered as everywhere',
      async run() {
        const document = JSON.parse(readFileSync('lib/api/openapi.json', 'utf8'));
        is(await send(`${url}/openapi.json`), { status: 200, body: document });
        is(await send(`${url}/health/alive`), { status: 200, body: { status: 'ok' } });
        is(await send(`${url}/health/ready`), { status: 200, body: { status: 'ok' } });
        is(await send(`${url}/users/v1/nobody`), NOT_FOUND);
        assert.equal((await send(`${url}${ME}`, { method: 'OPTIONS' })).status, 204);
        assert.equal((await send(`${url}${ME}`, { method: 'DELETE' })).status, 405);
        is(await send(url, { method: 'POST', body: 'x' }), {
          status: 405,
          body: { message: 'Method not allowed' },
        });
      },
    },
    {
      title: 'an address has one spelling: with a session, every other one is a 404',
      async run() {
        for (const address of SPELLINGS)
          assert.equal(
            (await send(`${url}${address}`, { headers: bearer(token('guard')) })).status,
            404,
            address,
          );
      },
    },
    {
      title: hasGate
        ? 'what only the framework’s client asks for is refused: aliases (404), a state that does not parse (400)'
        : 'aliases (.rsc) lead to the same guard; a state that does not parse is a 500 without a stack',
      async run() {
        const alias = async (headers: Record<string, string>) =>
          (await send(`${url}${ME}.rsc`, { headers })).status;
        const withHeader = async (headers: Record<string, string>) =>
          (await send(`${url}${ME}`, { headers: { ...headers, rsc: '1' } })).status;
        const session = bearer(token('guard'));
        assert.deepEqual([await alias({}), await alias(session)], hasGate ? [404, 404] : [401, 200]);
        assert.deepEqual([await withHeader({}), await withHeader(session)], [401, 200]);
        const state = { rsc: '1', 'next-router-state-tree': 'of-nobody' };
        const { status, body } = await send(`${url}/docs?_rsc=1`, { headers: state });
        assert.equal(status, hasGate ? 400 : 500);
        assert.doesNotMatch(String(body), /\bat .*\.js|of-nobody/);
        assert.ok(!deployment.output().includes('of-nobody'), 'the log quotes it');
      },
    },
    {
      title: 'without the cache all is answered; without the database the cached users, and health says so',
      async run() {
        await parts.kv.proxy.treat('refuse');
        assert.equal((await me(url, token('guard'))).status, 200);
        assert.equal(
          (await register(url, token('guard'), { identityProviderUserId: user('uncached') })).status,
          201,
        );
        await parts.kv.proxy.treat('forward');
        const isCached = async () =>
          (await me(url, token('guard'))).headers.get('server-timing')?.includes('cache;desc=hit') === true;
        assert.ok(await waitUntil(isCached, 10_000), 'the cache is not in use again');
        await parts.database.proxy.treat('refuse');
        assert.equal((await me(url, token('guard'))).status, 200);
        is(await register(url, token('guard'), { identityProviderUserId: user('later') }), {
          status: 500,
          body: { message: 'Internal Server Error' },
        });
        const tells = async () => (await send(`${url}/health/ready`)).status === 503;
        assert.ok(await waitUntil(tells, 10_000), 'ready without a database');
        await parts.database.proxy.treat('forward');
        const isReady = async () => (await send(`${url}/health/ready`)).status === 200;
        assert.ok(await waitUntil(isReady, 10_000), 'not ready again');
        assert.equal(
          (await register(url, token('guard'), { identityProviderUserId: user('later') })).status,
          201,
        );
      },
    },
    {
      title: 'an instance is kept awake (waitUntil) until its idle database connections are closed',
      async run() {
        await register(url, token('guard'), { identityProviderUserId: user('awake') });
        assert.ok((registration.instance()?.waiting() ?? 0) > 0, 'nothing keeps it awake');
        assert.ok((await connectionsOf(parts)) > 0);
        const isDone = () => registration.instance()?.waiting() === 0;
        assert.ok(await waitUntil(isDone, IDLE_MILLISECONDS), 'it is kept awake for ever');
        const isClosed = async () => (await connectionsOf(parts)) === 0;
        assert.ok(await waitUntil(isClosed, 1_000), 'connections stay open in a suspended instance');
      },
    },
    {
      title: `SIGTERM: the database connections are closed within the ${GRANTED_MILLISECONDS} ms that are granted`,
      async run() {
        await register(url, token('guard'), { identityProviderUserId: user('last') });
        const { pid } = registration.instance() ?? {};
        assert.ok(pid !== undefined && (await connectionsOf(parts)) > 0);
        process.kill(pid, 'SIGTERM');
        const isClosed = async () => (await connectionsOf(parts)) === 0;
        assert.ok(await waitUntil(isClosed, GRANTED_MILLISECONDS));
        await registration.stop();
        assert.equal((await me(url, token('guard'))).status, 200, 'the next instance does not answer');
      },
    },
    {
      title: 'the log has a line of each request, and nothing secret or personal',
      async run() {
        for (const line of [`"route":"GET ${ME}","status":200`, `"route":"POST ${REGISTER}","status":201`])
          assert.ok(deployment.output().includes(line), line);
        assert.deepEqual(indiscreetLines(deployment.output(), parts.environment), []);
      },
    },
  ];
}
