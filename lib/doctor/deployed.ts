import { randomUUID } from 'node:crypto';
import { Webhook } from 'svix';
import * as z from 'zod/mini';
import { retry, TransientError } from '../concurrency/retry';
import { parseJson } from '../http/body';
import { INVALID_SIGNATURE } from '../webhook';
import {
  type CheckResult,
  check,
  errorCode,
  failure,
  medianDuration,
  type NamedCheck,
  ok,
  settle,
  skipped,
  THREE_ATTEMPTS,
  warning,
} from './check';
import { ENV_GROUPS, tryParse } from './variables';

/**
 * Timeout of one call. It equals the timeout of the provider's webhook sender. A serverless function may need seconds for its
 * first response.
 */
const CALL_TIMEOUT_MS = 15_000;
/** Timeout of one call to the local stack (dev/). Its development server compiles a route on the first request. */
const LOCAL_CALL_TIMEOUT_MS = 60_000;
const ROUNDS = 5;
const WEBHOOK = '/webhooks/idp/v1/user-created';
/** The service ignores events of this type. A `user.created` event would create a user. */
const EVENT_TYPE = 'doctor.check';

interface Site {
  readonly origin: string;
  readonly timeoutMs: number;
}

interface SiteResponse {
  readonly status: number;
  readonly headers: Headers;
  /** Undefined if the body is not JSON. */
  readonly body: unknown;
}

const MAX_BODY_LENGTH = 16 * 1024;

async function request(
  { origin, timeoutMs }: Site,
  path: string,
  init: RequestInit = {},
): Promise<SiteResponse> {
  const response = await fetch(`${origin}${path}`, {
    redirect: 'manual',
    signal: AbortSignal.timeout(timeoutMs),
    ...init,
  });
  const { status, headers } = response;
  return { status, headers, body: parseJson((await response.text()).slice(0, MAX_BODY_LENGTH)) };
}

const Body = z.object({
  status: z.optional(z.string()),
  message: z.optional(z.string()),
  received: z.optional(z.boolean()),
  eventType: z.optional(z.string()),
  errors: z.optional(z.record(z.string(), z.string())),
});
const bodyOf = ({ body }: SiteResponse) => Body.safeParse(body).data ?? {};

const CHECK_URL = 'Set --url to the public URL of the service, and check that the last deployment is running';

/** Returns a failure if the response is a redirect or has no JSON object. Another server must have sent such a response. */
function failureOfOtherServer({ status, body }: SiteResponse): CheckResult | undefined {
  if (status >= 300 && status < 400)
    return failure(
      `the response is a redirect (${status})`,
      'Set --url to the target of the redirect, or exclude the API paths from the redirect or login page in front of the service',
    );
  if (body === undefined || typeof body !== 'object' || body === null)
    return failure(
      `the response is not that of the service (${status}, not a JSON object)`,
      'Set --url to the URL of the service, and exclude its API paths from deployment protection',
    );
  return undefined;
}

const explain =
  ({ timeoutMs }: Site) =>
  (error: unknown): CheckResult =>
    error instanceof Error && error.name === 'TimeoutError'
      ? failure(`the service does not respond within ${timeoutMs / 1000} s`, CHECK_URL)
      : failure(`cannot connect to the service (${errorCode(error)})`, CHECK_URL);

/** Describes how a response differs from the expected one: in its status or, if that is equal, in its body. */
const unlike = (expected: number, { status }: SiteResponse) =>
  status === expected ? `a ${status} with an unexpected body` : `a ${status} instead of a ${expected}`;

function checkAlive(response: SiteResponse): CheckResult {
  return (
    failureOfOtherServer(response) ??
    (response.status === 200 && bodyOf(response).status === 'ok'
      ? ok('responds')
      : failure(`GET /health/alive gets ${unlike(200, response)}`, CHECK_URL))
  );
}

async function checkReady(site: Site): Promise<CheckResult> {
  const readiness = async () => {
    const response = await request(site, '/health/ready');
    // A single slow response of the cache also causes `degraded`, so the request is repeated.
    if (bodyOf(response).status === 'degraded') throw new TransientError('The cache does not respond');
    return response;
  };
  const response = await retry(THREE_ATTEMPTS, readiness).catch((error: unknown) => {
    if (error instanceof TransientError) return undefined;
    throw error;
  });
  if (response === undefined)
    return warning(
      'ready, but the cache of the service does not respond',
      "Compare KV_REST_API_URL and KV_REST_API_TOKEN of the deployment with the values in the dashboard of the store's provider",
    );
  const { status, errors } = bodyOf(response);
  if (status === 'ok') return ok('ready');
  if (errors?.['database'])
    return failure(
      'the database of the service does not respond',
      'Compare DATABASE_URL of the deployment with the value in this environment',
    );
  return (
    failureOfOtherServer(response) ??
    failure(
      `not ready (${response.status})`,
      'Wait until the deployment is running, and run the doctor again',
    )
  );
}

async function checkGuard(site: Site): Promise<CheckResult> {
  const response = await request(site, '/users/v1/me');
  return (
    failureOfOtherServer(response) ??
    (response.status === 401 && bodyOf(response).message === 'Unauthorized'
      ? ok('a request without a session gets a 401 in JSON')
      : failure(
          `a request without a session gets ${unlike(401, response)}`,
          'Check that no other server responds to API paths, and that the version of this checkout is deployed',
        ))
  );
}

/** Sends `payload` as an event, with the signature of `signed`. The two texts are equal, except in a forged event. */
function deliver(site: Site, secret: string, payload: string, signed = payload): Promise<SiteResponse> {
  const id = `msg_doctor_${randomUUID()}`;
  const sentAt = new Date();
  return request(site, WEBHOOK, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'svix-id': id,
      'svix-timestamp': String(Math.floor(sentAt.getTime() / 1000)),
      'svix-signature': new Webhook(secret).sign(id, sentAt, signed),
    },
    body: payload,
  });
}

const event = (note: string) => JSON.stringify({ type: EVENT_TYPE, object: 'event', data: { note } });

async function checkWebhook(site: Site, secrets: readonly string[]): Promise<CheckResult> {
  const responses = await Promise.all(secrets.map((secret) => deliver(site, secret, event('signed'))));
  for (const [index, response] of responses.entries()) {
    const { received, eventType, message } = bodyOf(response);
    if (response.status === 200 && received && eventType === EVENT_TYPE) continue;
    if (message === INVALID_SIGNATURE)
      return failure(
        secrets.length === 1
          ? 'the service rejects an event that is signed with the signing secret of this environment'
          : `the service rejects an event that is signed with signing secret ${index + 1} of ${secrets.length}`,
        'Set IDP_WEBHOOK_SIGNING_SECRET of the deployment to the value in this environment, and deploy again. If the values are already equal, check the clock of this machine: the service rejects events whose time is more than 5 minutes off',
      );
    return (
      failureOfOtherServer(response) ??
      failure(`a signed event gets ${unlike(200, response)}`, "Look for the request in the deployment's log")
    );
  }
  return ok('the service acknowledges a signed test event');
}

async function checkForgery(site: Site, [secret = '']: readonly string[]): Promise<CheckResult> {
  const response = await deliver(site, secret, event('forged'), event('signed'));
  if (response.status === 400 && bodyOf(response).message === INVALID_SIGNATURE)
    return ok('the service rejects a forged event');
  return (
    failureOfOtherServer(response) ??
    failure(
      `a forged event gets ${unlike(400, response)}`,
      'Take this URL out of service: either another application responds there, or any client may register users',
    )
  );
}

async function checkTransport({ origin, timeoutMs }: Site, { headers }: SiteResponse): Promise<CheckResult> {
  if (!origin.startsWith('https:')) return skipped('the URL is not https://');
  const plain = await request(
    { origin: origin.replace('https:', 'http:'), timeoutMs },
    '/health/alive',
  ).catch(() => undefined);
  return judgeTransport(
    headers.get('strict-transport-security') ?? '',
    plain && { status: plain.status, location: plain.headers.get('location') ?? '' },
  );
}

/**
 * Judges the `strict-transport-security` header and `plain`, the response to an `http://` request. `plain` is undefined if that
 * request got no response.
 */
export function judgeTransport(
  strictTransport: string,
  plain: { readonly status: number; readonly location: string } | undefined,
): CheckResult {
  if (plain && !(plain.status >= 300 && plain.status < 400 && plain.location.startsWith('https:')))
    return warning(
      `http:// responds with ${plain.status} instead of a redirect to https://`,
      'Configure the platform to redirect http:// to https://',
    );
  if (!/max-age=[1-9]/.test(strictTransport))
    return warning(
      'no strict-transport-security header',
      'Check that no proxy removes the header that next.config.ts sets',
    );
  return ok(
    plain ? 'http:// redirects to https://, and strict-transport-security is set' : 'only https:// responds',
  );
}

/** An unknown path below `/users`, where every response of the service is JSON. */
const UNKNOWN_PATH = '/users/v1/no-such-path';

async function checkUnknownPath(site: Site): Promise<CheckResult> {
  const response = await request(site, UNKNOWN_PATH);
  return (
    failureOfOtherServer(response) ??
    (response.status === 404
      ? ok('an unknown path gets a 404 in JSON')
      : failure(
          `an unknown path gets a ${response.status} instead of a 404`,
          'Remove rewrites of API paths in front of the service',
        ))
  );
}

/** Internal headers of the SDK and of Next.js, which clients must not receive. */
const INTERNAL_HEADER = /^(?:x-powered-by|x-clerk-.*|x-middleware-.*|x-nextjs-.*)$/;

async function checkHeaders(site: Site): Promise<CheckResult> {
  const { headers } = await request(site, '/users/v1/me', { headers: { authorization: 'Bearer a.b.c' } });
  const internal = [...headers.keys()].filter((name) => INTERNAL_HEADER.test(name));
  return internal.length === 0
    ? ok('the response to a rejected session has no internal headers')
    : warning(
        `the response to a rejected session has internal headers: ${internal.join(', ')}`,
        'Deploy the version of this checkout. If a proxy adds the headers, remove them there. If the headers remain, report a bug',
      );
}

/** One more query parameter than the service accepts. */
const TOO_MANY_PARAMETERS = 101;
const LONG_QUERY = Array.from({ length: TOO_MANY_PARAMETERS }, (_, index) => `p${index}=1`).join('&');

/** Judges the response to a request with more query parameters than the HTTP server and the middleware accept. */
export function judgeQueryLimit({ status, body }: Pick<SiteResponse, 'status' | 'body'>): CheckResult {
  if (status >= 500)
    return failure(
      `responds with ${status} to ${TOO_MANY_PARAMETERS} query parameters`,
      "Look for the request in the deployment's log",
    );
  if (status < 400)
    return failure(`accepts ${TOO_MANY_PARAMETERS} query parameters`, 'Deploy the version of this checkout');
  const layer = status === 400 && body !== undefined ? 'the service' : 'a layer in front of the service';
  return ok(`${layer} rejects ${TOO_MANY_PARAMETERS} query parameters (${status})`);
}

/** Checks a deployed service over the network, as users and the provider reach it. Does not create a user. */
export async function checkDeployedService(origin: string, isLocal: boolean): Promise<NamedCheck[]> {
  const timeoutMs = isLocal ? LOCAL_CALL_TIMEOUT_MS : CALL_TIMEOUT_MS;
  const site = { origin, timeoutMs };
  // Longer than the timeout of a call. Otherwise, a check would end before it can report that a call timed out.
  const checkTimeoutMs = timeoutMs + 1_000;
  const first = await settle(() => request(site, '/health/alive'), explain(site), checkTimeoutMs);
  const alive = 'value' in first ? checkAlive(first.value) : first.failed;
  const secrets = tryParse(ENV_GROUPS.signingSecrets)?.IDP_WEBHOOK_SIGNING_SECRET;
  const checkSite = (name: string, run: (response: SiteResponse) => CheckResult | Promise<CheckResult>) =>
    check(
      name,
      async () => {
        if (!('value' in first) || alive.status !== 'ok')
          return skipped('the first check of the service did not succeed');
        const settled = await settle(async () => run(first.value), explain(site), checkTimeoutMs);
        return 'value' in settled ? settled.value : settled.failed;
      },
      checkTimeoutMs,
    );
  const noSecret = skipped('IDP_WEBHOOK_SIGNING_SECRET is invalid');
  const results = await Promise.all([
    check('service', () => alive),
    checkSite('service ready', () => checkReady(site)),
    checkSite('service guard', () => checkGuard(site)),
    checkSite('service webhook', () => (secrets ? checkWebhook(site, secrets) : noSecret)),
    checkSite('service forgery', () => (secrets ? checkForgery(site, secrets) : noSecret)),
    checkSite('service transport', (response) => checkTransport(site, response)),
    checkSite('service unknown path', () => checkUnknownPath(site)),
    checkSite('service headers', () => checkHeaders(site)),
    checkSite('service query limit', async () =>
      judgeQueryLimit(await request(site, `/health/alive?${LONG_QUERY}`)),
    ),
  ]);
  // The latency is measured alone, so that the other calls do not affect it.
  const latency = await checkSite('service latency', async () => {
    const milliseconds = await medianDuration(ROUNDS, () => request(site, '/health/alive'));
    return ok(`${milliseconds} ms from this machine, median of ${ROUNDS}`);
  });
  return [...results, latency];
}
