import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { waitUntil } from '../../dev/system/processes';
import {
  bearer,
  cookie,
  deliver,
  HOOK,
  ME,
  me,
  type ParsedResponse,
  REGISTER,
  register,
  send,
  tokenFor,
  userCreated,
} from '../../tests/harness/requests';
import { findPrivateLines, type TestDependencies } from '../../tests/harness/service';
import type { Deployment } from './deployment';
import type { Check } from './report';

/** Time between SIGTERM and SIGKILL according to the Vercel documentation. */
const GRACE_MILLISECONDS = 500;
/** Maximum wait for the promises passed to Vercel's `waitUntil`. They settle when the database pool has been idle for 5 s. */
const IDLE_WAIT_MILLISECONDS = 10_000;

/** Returns the number of database connections of the service. */
export async function countConnections({ database, environment }: TestDependencies): Promise<number> {
  const { username } = new URL(environment['DATABASE_URL'] ?? '');
  const { rowCount } = await database.pool.query('SELECT 1 FROM pg_stat_activity WHERE usename = $1', [
    username,
  ]);
  return rowCount ?? 0;
}

const expectResponse = (
  { status, body }: ParsedResponse,
  expected: { readonly status: number; readonly body: unknown },
) => assert.deepEqual({ status, body }, expected);

const NOT_FOUND = { status: 404, body: { message: 'Not found' } };

/** Alternative URLs of a guarded route, and internal URLs of Next.js. */
const ALTERNATIVE_PATHS = [
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

/** Headers that only the platform or the middleware may set. */
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
 * Returns the checks of one deployment. `name` is part of each user id. The Vercel functions run without server.ts, the HTTP
 * server of `npm start`, so only the middleware filters requests.
 */
export function responseChecks(
  name: string,
  deployment: Deployment,
  dependencies: TestDependencies,
): readonly Check[] {
  const { url } = deployment;
  const user = (suffix: string) => `user_${name}_${suffix}`;
  const token = (suffix: string) => tokenFor(dependencies.idp, user(suffix));
  const registration = deployment.at(REGISTER);
  return [
    {
      title:
        'A guarded route returns 401 without a session. With a session, it returns the id of the row in the database, and the second request reads the id from the cache',
      async run() {
        const rejected = await send(`${url}${ME}`);
        expectResponse(rejected, { status: 401, body: { message: 'Unauthorized' } });
        const [created, cached] = [await me(url, token('guard')), await me(url, token('guard'))];
        const [row] = await dependencies.database.rowsOf(user('guard'));
        const body = { isAuthenticated: true, userId: row?.id, identityProviderUserId: user('guard') };
        expectResponse(created, { status: 200, body });
        expectResponse(cached, { status: 200, body });
        assert.match(cached.headers.get('server-timing') ?? '', /cache;desc=hit/);
        for (const { headers } of [rejected, created, cached]) {
          assert.equal(headers.get('cache-control'), 'no-store');
          assert.match(headers.get('x-request-id') ?? '', /./);
          assert.equal(headers.get('x-content-type-options'), 'nosniff');
        }
      },
    },
    {
      title: 'Neither request headers nor a query parameter can replace a session',
      async run() {
        for (const address of [ME, `${ME}?__clerk_handshake=x`])
          expectResponse(await send(`${url}${address}`, { headers: FORGED }), {
            status: 401,
            body: { message: 'Unauthorized' },
          });
      },
    },
    {
      title:
        'The register route returns 201, and then 200 with the same id. It returns 400 for a body without an id, and 413 for a body of 17 KiB',
      async run() {
        const body = { identityProviderUserId: user('colleague') };
        const [created, again] = [
          await register(url, token('guard'), body),
          await register(url, token('guard'), body),
        ];
        const [row] = await dependencies.database.rowsOf(user('colleague'));
        expectResponse(created, { status: 201, body: { userId: row?.id, ...body } });
        expectResponse(again, { status: 200, body: { userId: row?.id, ...body } });
        assert.equal((await register(url, token('guard'), {})).status, 400);
        const tooLarge = await register(url, token('guard'), { padding: 'x'.repeat(17 * 1024) });
        expectResponse(tooLarge, { status: 413, body: { message: 'Payload too large' } });
      },
    },
    {
      title:
        'The webhook verifies the signature of the exact bytes. It returns 400 without a signature or a body, and 413 above 1 MiB',
      async run() {
        const body = `${userCreated(user('announced'))}\n`;
        expectResponse(await deliver(url, body), {
          status: 200,
          body: { received: true, eventType: 'user.created' },
        });
        assert.equal((await dependencies.database.rowsOf(user('announced'))).length, 1);
        const invalid = { status: 400, body: { message: 'Invalid webhook signature' } };
        expectResponse(await deliver(url, body, {}), invalid);
        expectResponse(await send(`${url}${HOOK}`, { method: 'POST' }), {
          status: 400,
          body: { message: 'Missing body' },
        });
        expectResponse(await deliver(url, 'x'.repeat(2 ** 20 + 1)), {
          status: 413,
          body: { message: 'Payload too large' },
        });
      },
    },
    {
      title:
        'Public pages load, the account page redirects to sign-in without a session, and client-side navigation works',
      async run() {
        for (const address of ['/', '/docs', '/sign-in', '/sign-in/factor-one', '/sign-up']) {
          const { status, body, headers } = await send(`${url}${address}`);
          assert.equal(status, 200, address);
          const [, nonce] = /'nonce-([^']+)'/.exec(headers.get('content-security-policy') ?? '') ?? [];
          assert.ok(
            nonce && String(body).includes(`nonce="${nonce}"`),
            `${address}: no script has the nonce`,
          );
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
      title:
        'Requests for the OpenAPI document, health checks, unknown paths and unsupported methods get the documented responses',
      async run() {
        const document = JSON.parse(readFileSync('lib/api/openapi.json', 'utf8'));
        expectResponse(await send(`${url}/openapi.json`), { status: 200, body: document });
        expectResponse(await send(`${url}/health/alive`), { status: 200, body: { status: 'ok' } });
        expectResponse(await send(`${url}/health/ready`), { status: 200, body: { status: 'ok' } });
        expectResponse(await send(`${url}/users/v1/unknown`), NOT_FOUND);
        assert.equal((await send(`${url}${ME}`, { method: 'OPTIONS' })).status, 204);
        assert.equal((await send(`${url}${ME}`, { method: 'DELETE' })).status, 405);
        expectResponse(await send(url, { method: 'POST', body: 'x' }), {
          status: 405,
          body: { message: 'Method not allowed' },
        });
      },
    },
    {
      title:
        'Internal URLs of Next.js and alternative URLs of a route, except its .rsc alias, get a 404, even with a session',
      async run() {
        for (const address of ALTERNATIVE_PATHS)
          assert.equal(
            (await send(`${url}${address}`, { headers: bearer(token('guard')) })).status,
            404,
            address,
          );
      },
    },
    {
      title:
        'An .rsc alias and an rsc header do not bypass the guard, and a malformed next-router-state-tree header gets a 500 without a stack trace',
      async run() {
        const alias = async (headers: Record<string, string>) =>
          (await send(`${url}${ME}.rsc`, { headers })).status;
        const withHeader = async (headers: Record<string, string>) =>
          (await send(`${url}${ME}`, { headers: { ...headers, rsc: '1' } })).status;
        const session = bearer(token('guard'));
        assert.deepEqual([await alias({}), await alias(session)], [401, 200]);
        assert.deepEqual([await withHeader({}), await withHeader(session)], [401, 200]);
        const state = { rsc: '1', 'next-router-state-tree': 'invalid-state' };
        const { status, body } = await send(`${url}/docs?_rsc=1`, { headers: state });
        assert.equal(status, 500);
        assert.doesNotMatch(String(body), /\bat .*\.js|invalid-state/);
        assert.ok(!deployment.output().includes('invalid-state'), 'the log contains the value');
      },
    },
    {
      title:
        'Requests succeed without the cache. Without the database, a cached user gets a 200 and the readiness check returns 503',
      async run() {
        await dependencies.kv.proxy.treat('refuse');
        assert.equal((await me(url, token('guard'))).status, 200);
        assert.equal(
          (await register(url, token('guard'), { identityProviderUserId: user('uncached') })).status,
          201,
        );
        await dependencies.kv.proxy.treat('forward');
        const isCached = async () =>
          (await me(url, token('guard'))).headers.get('server-timing')?.includes('cache;desc=hit') === true;
        assert.ok(await waitUntil(isCached, 10_000), 'the service does not use the cache again');
        await dependencies.database.proxy.treat('refuse');
        assert.equal((await me(url, token('guard'))).status, 200);
        expectResponse(await register(url, token('guard'), { identityProviderUserId: user('later') }), {
          status: 500,
          body: { message: 'Internal Server Error' },
        });
        const isUnready = async () => (await send(`${url}/health/ready`)).status === 503;
        assert.ok(await waitUntil(isUnready, 10_000), 'the service is ready without a database');
        await dependencies.database.proxy.treat('forward');
        const isReady = async () => (await send(`${url}/health/ready`)).status === 200;
        assert.ok(await waitUntil(isReady, 10_000), 'the service is not ready after the database recovered');
        assert.equal(
          (await register(url, token('guard'), { identityProviderUserId: user('later') })).status,
          201,
        );
      },
    },
    {
      title:
        "The platform's waitUntil keeps an instance awake until its idle database connections are closed",
      async run() {
        await register(url, token('guard'), { identityProviderUserId: user('awake') });
        assert.ok((registration.instance()?.waiting() ?? 0) > 0, "the platform's waitUntil was not called");
        assert.ok((await countConnections(dependencies)) > 0);
        const isDone = () => registration.instance()?.waiting() === 0;
        assert.ok(
          await waitUntil(isDone, IDLE_WAIT_MILLISECONDS),
          "the promise of the platform's waitUntil is pending",
        );
        const isClosed = async () => (await countConnections(dependencies)) === 0;
        assert.ok(
          await waitUntil(isClosed, 1_000),
          'the instance may be suspended while it has open database connections',
        );
      },
    },
    {
      title: `An instance closes its database connections within ${GRACE_MILLISECONDS} ms after SIGTERM`,
      async run() {
        await register(url, token('guard'), { identityProviderUserId: user('last') });
        const { pid } = registration.instance() ?? {};
        assert.ok(pid !== undefined && (await countConnections(dependencies)) > 0);
        process.kill(pid, 'SIGTERM');
        const isClosed = async () => (await countConnections(dependencies)) === 0;
        assert.ok(await waitUntil(isClosed, GRACE_MILLISECONDS));
        await registration.stop();
        assert.equal((await me(url, token('guard'))).status, 200, 'the next instance does not respond');
      },
    },
    {
      title: 'The log contains the route and the status of requests, and no secrets or personal data',
      async run() {
        for (const line of [`"route":"GET ${ME}","status":200`, `"route":"POST ${REGISTER}","status":201`])
          assert.ok(deployment.output().includes(line), line);
        assert.deepEqual(findPrivateLines(deployment.output(), dependencies.environment), []);
      },
    },
  ];
}
