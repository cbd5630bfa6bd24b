import { randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Webhook } from 'svix';
import * as z from 'zod/mini';
import { type CheckResult, check, fail, skip, validVariables, warn } from '../base/check';
import { isLoopback, variables } from '../base/env';
import { errorCode } from '../base/errors';
import { fieldsOf, parseJson } from '../core/values';
import { INVALID_SIGNATURE } from '../core/webhook';
import { isMiddlewareHeader } from '../next/middleware-headers';
import { METADATA_PATH } from '../protected-resource';

const MAX_BODY_LENGTH = 16 * 1024;
const ME = '/users/v1/me';
/** The service ignores events of this type. A `user.created` event would create a user. */
const EVENT_TYPE = 'doctor.check';

const CHECK_URL = 'Set --url to the public URL of the service, and check that the last deployment is running';
const LOOK_IN_LOG = "Look for the request in the deployment's log";

const Body = z.record(z.string(), z.unknown());
type SiteResponse = Awaited<ReturnType<typeof request>>;

/** Explains a response that is not JSON. A route of the service cannot have sent it. */
function failForOtherServer({ status, headers }: Response): never {
  const what = `(${status}, ${headers.get('content-type')?.split(';')[0] ?? 'no content type'})`;
  if (status >= 300 && status < 400) {
    const host = /^https?:\/\/([^/?#]+)/.exec(headers.get('location') ?? '')?.[1] ?? 'another path';
    fail(
      `the response is a redirect to ${host} ${what}`,
      'If it leads to a login page, exclude the API paths from deployment protection. Otherwise, set --url to the target',
    );
  }
  if (status === 401 || status === 403)
    fail(
      `deployment protection or a login in front of the service responds ${what}`,
      'Exclude the API paths from the protection, or set --url to a domain without protection',
    );
  if (status >= 500)
    fail(
      `the service or its platform fails before a route responds ${what}`,
      `${LOOK_IN_LOG}: the process does not start, or the middleware throws`,
    );
  fail(
    `another server responds ${what}`,
    'Set --url to the URL of the service, and check that the version of this checkout is deployed',
  );
}

async function request(origin: string, path: string, init: RequestInit = {}) {
  // 15 s is the timeout of the provider's webhook sender. On this machine, `next dev` compiles a route on its first request.
  const seconds = isLoopback(new URL(origin).hostname) ? 60 : 15;
  const signal = AbortSignal.timeout(seconds * 1_000);
  const response = await fetch(`${origin}${path}`, { redirect: 'manual', signal, ...init }).catch(
    (error: unknown) => fail(`cannot connect to the service (${errorCode(error)})`, CHECK_URL),
  );
  const body = Body.safeParse(parseJson((await response.text()).slice(0, MAX_BODY_LENGTH)));
  // Next.js sends a 405 without a body.
  if (!body.success && response.status !== 405) failForOtherServer(response);
  return { status: response.status, headers: response.headers, body: body.data ?? {} };
}

/** Describes how a response differs from the expected one: in its status or, if that is equal, in its body. */
const unlike = (expected: number, { status }: SiteResponse) =>
  status === expected ? `a ${status} with an unexpected body` : `a ${status} instead of a ${expected}`;

async function checkAlive(origin: string): Promise<string> {
  const response = await request(origin, '/health/alive');
  if (response.status === 200 && response.body['status'] === 'ok') return origin;
  fail(`GET /health/alive gets ${unlike(200, response)}`, CHECK_URL);
}

async function checkReady(origin: string): Promise<string> {
  let response = await request(origin, '/health/ready');
  if (response.body['status'] === 'degraded') {
    // One slow response of the cache also causes `degraded`. The service caches the result for 1 s.
    await pause(1_500);
    response = await request(origin, '/health/ready');
  }
  const { status, errors } = response.body;
  if (status === 'ok') return 'its database and its cache respond';
  const remedy = 'Compare the variables of the deployment with this environment';
  if (status === 'degraded') warn('ready, but the cache of the service does not respond', remedy);
  if ('database' in fieldsOf(errors)) fail('the database of the service does not respond', remedy);
  fail(`GET /health/ready gets ${unlike(200, response)}`, LOOK_IN_LOG);
}

/** Returns the headers of the response to a request with these headers. Fails if the response is not a 401. */
async function expectUnauthorized(origin: string, what: string, headers: Record<string, string>) {
  const response = await request(origin, ME, { headers });
  if (response.status !== 401 || response.body['message'] !== 'Unauthorized')
    fail(
      `a request with ${what} gets ${unlike(401, response)}`,
      'Check that no other server responds to API paths, and that the version of this checkout is deployed',
    );
  return response.headers;
}

const checkGuard = (origin: string): Promise<string> =>
  expectUnauthorized(origin, 'no session', {}).then(() => 'a request without a session gets a 401 in JSON');

/** Sends an event with the signature of `signed`. The two texts are equal, except in a forged event. */
function deliver(origin: string, secret: string, payload: string, signed = payload): Promise<SiteResponse> {
  const [id, sentAt] = [`msg_doctor_${randomUUID()}`, new Date()];
  return request(origin, '/webhooks/idp/v1/user-created', {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'svix-id': id,
      'svix-timestamp': String(Math.floor(sentAt.getTime() / 1_000)),
      'svix-signature': new Webhook(secret).sign(id, sentAt, signed),
    },
    body: payload,
  });
}

const event = (note: string) => JSON.stringify({ type: EVENT_TYPE, object: 'event', data: { note } });
const signingSecrets = () =>
  validVariables(z.pick(variables, { IDP_WEBHOOK_SIGNING_SECRET: true })).IDP_WEBHOOK_SIGNING_SECRET;

async function checkWebhook(origin: string): Promise<string> {
  for (const [index, secret] of signingSecrets().entries()) {
    const response = await deliver(origin, secret, event('signed'));
    if (response.body['message'] === INVALID_SIGNATURE)
      fail(
        `the service rejects an event that is signed with signing secret ${index + 1} of this environment`,
        'Set IDP_WEBHOOK_SIGNING_SECRET of the deployment to the same value, and check the clock of this machine',
      );
    if (response.status !== 200 || response.body['eventType'] !== EVENT_TYPE)
      fail(`a signed event gets ${unlike(200, response)}`, LOOK_IN_LOG);
  }
  return 'the service acknowledges a signed test event';
}

async function checkForgery(origin: string): Promise<string> {
  const response = await deliver(origin, signingSecrets()[0] ?? '', event('forged'), event('signed'));
  if (response.status !== 400 || response.body['message'] !== INVALID_SIGNATURE)
    fail(
      `a forged event gets ${unlike(400, response)}`,
      'Take this URL out of service: either another application responds there, or any client may register users',
    );
  return 'the service rejects a forged event';
}

/** Internal headers of the SDK and of Next.js, which clients must not receive. */
const INTERNAL = /^x-(?:powered-by$|clerk-|nextjs-)/;

async function checkHeaders(origin: string): Promise<string> {
  const headers = await expectUnauthorized(origin, 'an invalid token', { authorization: 'Bearer a.b.c' });
  const wrong = [
    ...[...headers.keys()].filter((name) => isMiddlewareHeader(name) || INTERNAL.test(name)),
    ...['strict-transport-security', 'x-content-type-options'].filter((name) => !headers.has(name)),
  ];
  if (wrong.length === 0) return 'a response has the security headers and no internal headers';
  const message = `a response has internal headers or lacks security headers: ${wrong.join(', ')}`;
  warn(message, 'Check that no proxy or platform setting changes the headers');
}

/** Returns the paths of the protected resources of this checkout. Each has a route for its metadata. */
async function resourcePaths(): Promise<string[]> {
  const files = await readdir(`app${METADATA_PATH}`, { recursive: true }).catch(() => []);
  return files.filter((file) => /(?:^|\/)route\.tsx?$/.test(file)).map((file) => join('/', dirname(file)));
}

/** Checks that the 401 of each protected resource leads an OAuth client to its metadata. */
async function checkResources(origin: string): Promise<string> {
  const { PUBLIC_ORIGIN } = validVariables(z.pick(variables, { PUBLIC_ORIGIN: true }));
  const remedy =
    'Set PUBLIC_ORIGIN of the deployment and of this environment to the public origin of the service';
  const paths = await resourcePaths();
  for (const path of paths) {
    const posted = await request(origin, path, { method: 'POST' });
    const { status, headers } = posted.status === 405 ? await request(origin, path) : posted;
    const [, address] = /resource_metadata="([^"]+)"/.exec(headers.get('www-authenticate') ?? '') ?? [];
    if (status !== 401 || address === undefined)
      fail(`${path} does not respond with a 401 that names its metadata, but with a ${status}`, remedy);
    const { body } = await request(new URL(address).origin, new URL(address).pathname);
    if (body['resource'] !== `${PUBLIC_ORIGIN}${path}`)
      fail(`the metadata that the 401 of ${path} names is for another resource`, remedy);
  }
  return paths.length === 0
    ? 'has no protected resource'
    : 'OAuth clients find the metadata of each resource';
}

/** Checks a deployed service over the network, as users and the provider reach it. Does not create a user. */
export async function checkDeployedService(origin: string): Promise<CheckResult[]> {
  const alive = checkAlive(origin);
  const checkAlso = (name: string, run: (origin: string) => Promise<string>) =>
    check(name, () => alive.then(run, () => skip('the first check of the service did not succeed')));
  return Promise.all([
    check('service', () => alive.then(() => 'responds')),
    checkAlso('service ready', checkReady),
    checkAlso('service guard', checkGuard),
    checkAlso('service webhook', checkWebhook),
    checkAlso('service forgery', checkForgery),
    checkAlso('service headers', checkHeaders),
    checkAlso('service oauth', checkResources),
  ]);
}
