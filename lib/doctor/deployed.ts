import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Webhook } from 'svix';
import * as z from 'zod/mini';
import { parseJson } from '../http/body';
import { INVALID_SIGNATURE } from '../webhook';
import {
  attempt,
  check,
  codeOf,
  type Examined,
  type Finding,
  failure,
  median,
  ok,
  skipped,
  warning,
} from './check';
import { PARTS, valid } from './variables';

/** What the provider's sender waits for an answer; the first one of a function may take seconds. */
const CALL_MS = 15_000;
/** The development server compiles a route when it is first asked for. */
const LOCAL_CALL_MS = 60_000;
const ROUNDS = 5;
/** One slow answer of its cache is no finding; an answer of the service is told for a second. */
const READY_TRIES = 3;
const TOLD_AGAIN_MS = 1_100;
const WEBHOOK = '/webhooks/idp/v1/user-created';
/** Nobody is registered by it. An event that makes a user is not sent: it would make one. */
const EVENT_TYPE = 'doctor.check';

/** Where the service is, and how long an answer may take. */
interface Site {
  readonly origin: string;
  readonly milliseconds: number;
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Undefined: it is no JSON. */
  readonly body: unknown;
}

const MAX_ANSWER_LENGTH = 16 * 1024;

async function ask({ origin, milliseconds }: Site, path: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(`${origin}${path}`, {
    redirect: 'manual',
    signal: AbortSignal.timeout(milliseconds),
    ...init,
  });
  const { status, headers } = response;
  return { status, headers, body: parseJson((await response.text()).slice(0, MAX_ANSWER_LENGTH)) };
}

const Says = z.object({
  status: z.optional(z.string()),
  message: z.optional(z.string()),
  received: z.optional(z.boolean()),
  eventType: z.optional(z.string()),
  errors: z.optional(z.record(z.string(), z.string())),
});
const said = ({ body }: Answer) => Says.safeParse(body).data ?? {};

const ADDRESS = 'Give --url the address that users have, and see that the last deployment is up';

/** What answers in the service's place, told by how it answers; undefined: it may be the service. */
function stranger({ status, body }: Answer): Finding | undefined {
  if (status >= 300 && status < 400)
    return failure(
      `answers with a redirect (${status})`,
      'Give --url the address it leads to; or take API paths out of the redirect, or the login wall, that stands in front',
    );
  if (body === undefined || typeof body !== 'object' || body === null)
    return failure(
      `something else than the service answers (${status}, no JSON)`,
      'Give --url the address of the service; take its API paths out of deployment protection',
    );
  return undefined;
}

const unreachable =
  ({ milliseconds }: Site) =>
  (error: unknown): Finding =>
    error instanceof Error && error.name === 'TimeoutError'
      ? failure(`does not answer within ${milliseconds / 1000} s`, ADDRESS)
      : failure(`out of reach (${codeOf(error)})`, ADDRESS);

function alive(answer: Answer): Finding {
  return (
    stranger(answer) ??
    (answer.status === 200 && said(answer).status === 'ok'
      ? ok('answers')
      : failure(`answers with status ${answer.status}`, ADDRESS))
  );
}

async function ready(site: Site): Promise<Finding> {
  let answer = await ask(site, '/health/ready');
  for (let again = 1; again < READY_TRIES && said(answer).status === 'degraded'; again += 1) {
    await pause(TOLD_AGAIN_MS);
    answer = await ask(site, '/health/ready');
  }
  const { status, errors } = said(answer);
  if (status === 'ok') return ok('ready');
  if (status === 'degraded')
    return warning(
      'ready without its cache',
      "Compare KV_REST_API_URL and KV_REST_API_TOKEN of the deployment with the store's page",
    );
  if (errors?.['database'])
    return failure('its database does not answer', 'Compare DATABASE_URL of the deployment with this one');
  return (
    stranger(answer) ??
    failure(`not ready (${answer.status})`, 'Wait for the deployment to be up, then run this again')
  );
}

async function guarded(site: Site): Promise<Finding> {
  const answer = await ask(site, '/users/v1/me');
  return (
    stranger(answer) ??
    (answer.status === 401 && said(answer).message === 'Unauthorized'
      ? ok('401 in JSON to who is not signed in')
      : failure(
          `answers ${answer.status}, not 401, to who is not signed in`,
          'Let nothing in front answer in its place; see that the deployment is of this version',
        ))
  );
}

/** A delivery as the provider signs it. */
function deliver(site: Site, secret: string, payload: string, signed = payload): Promise<Answer> {
  const id = `msg_doctor_${randomUUID()}`;
  const at = new Date();
  return ask(site, WEBHOOK, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'svix-id': id,
      'svix-timestamp': String(Math.floor(at.getTime() / 1000)),
      'svix-signature': new Webhook(secret).sign(id, at, signed),
    },
    body: payload,
  });
}

const event = (note: string) => JSON.stringify({ type: EVENT_TYPE, object: 'event', data: { note } });

async function acknowledged(site: Site, secrets: readonly string[]): Promise<Finding> {
  const answers = await Promise.all(secrets.map((secret) => deliver(site, secret, event('signed'))));
  for (const [index, answer] of answers.entries()) {
    const { received, eventType, message } = said(answer);
    if (answer.status === 200 && received && eventType === EVENT_TYPE) continue;
    if (message === INVALID_SIGNATURE)
      return failure(
        secrets.length === 1
          ? 'refuses an event that is signed with this signing secret'
          : `refuses an event that is signed with signing secret ${index + 1} of ${secrets.length}`,
        'Give the deployment the same IDP_WEBHOOK_SIGNING_SECRET, and deploy anew; or this clock is off by 5 minutes',
      );
    return (
      stranger(answer) ??
      failure(`answers ${answer.status} to a signed event`, "Look at the deployment's log for that request")
    );
  }
  return ok('acknowledges a signed event, of a type that makes no user');
}

async function refused(site: Site, [secret = '']: readonly string[]): Promise<Finding> {
  const answer = await deliver(site, secret, event('forged'), event('signed'));
  if (answer.status === 400 && said(answer).message === INVALID_SIGNATURE)
    return ok('refuses a forged event');
  return (
    stranger(answer) ??
    failure(
      `answers ${answer.status}, not 400, to a forged event`,
      'Take the address out of use: it is not this service, or anybody may register users',
    )
  );
}

/** What `http://` leads to, and whether browsers are told to ask by `https://` alone. */
async function transport({ origin, milliseconds }: Site, { headers }: Answer): Promise<Finding> {
  if (!origin.startsWith('https:')) return skipped('not asked over https');
  const plain = await ask({ origin: origin.replace('https:', 'http:'), milliseconds }, '/health/alive').catch(
    () => undefined,
  );
  return judgeTransport(
    headers.get('strict-transport-security') ?? '',
    plain && { status: plain.status, location: plain.headers.get('location') ?? '' },
  );
}

/** By the header of a `https://` answer, and by what `http://` answers; undefined: it does not. */
export function judgeTransport(
  strictTransport: string,
  plain: { readonly status: number; readonly location: string } | undefined,
): Finding {
  if (plain && !(plain.status >= 300 && plain.status < 400 && plain.location.startsWith('https:')))
    return warning(`http:// answers with ${plain.status}`, 'Make the platform redirect http:// to https://');
  if (!/max-age=[1-9]/.test(strictTransport))
    return warning(
      'no strict-transport-security header',
      'Let the header of next.config.ts through to the browser',
    );
  return ok(plain ? 'http:// leads to https://, and browsers are told to stay there' : 'https:// only');
}

/** Below a root of the API, where every response is JSON. */
const UNKNOWN_PATH = '/users/v1/no-such-path';

async function unknownPath(site: Site): Promise<Finding> {
  const response = await ask(site, UNKNOWN_PATH);
  return (
    stranger(response) ??
    (response.status === 404
      ? ok('404 in JSON for an unknown path')
      : failure(
          `responds with ${response.status}, not 404, to an unknown path`,
          'Remove rewrites of API paths in front of the service',
        ))
  );
}

/** Headers that describe the SDK's verdict or the framework to every client. */
const INTERNAL_HEADER = /^(?:x-powered-by|x-clerk-.*|x-middleware-.*|x-nextjs-.*)$/;

/** Judges the headers of a response to a rejected session. */
function judgeHeaders(headers: Headers): Finding {
  const internal = [...headers.keys()].filter((name) => INTERNAL_HEADER.test(name));
  return internal.length === 0
    ? ok('no internal header in the response to a rejected session')
    : warning(
        `a response has internal headers: ${internal.join(', ')}`,
        'Deploy this version, and remove middleware in front that adds them; if they stay, report it as a bug',
      );
}

/** One more than the service accepts where its HTTP server has the limit. */
const TOO_MANY_PARAMETERS = 101;
const LONG_QUERY = Array.from({ length: TOO_MANY_PARAMETERS }, (_, index) => `p${index}=1`).join('&');

/** Judges the response to a request over the limit of query parameters, which platforms without an HTTP server lack. */
export function judgeQueryLimit({ status, body }: Pick<Answer, 'status' | 'body'>): Finding {
  if (status >= 500)
    return failure(
      `responds with ${status} to ${TOO_MANY_PARAMETERS} query parameters`,
      "Look at the deployment's log for that request",
    );
  if (status < 400)
    return ok(
      `${TOO_MANY_PARAMETERS} query parameters reach Next.js; docs/deploy.md has a rule against more`,
    );
  const layer = status === 400 && body !== undefined ? 'the service' : 'a layer in front of the service';
  return ok(`${layer} rejects ${TOO_MANY_PARAMETERS} query parameters (${status})`);
}

/** A deployed service, from outside, as users and the provider see it. It makes no user. */
export async function examineDeployed(origin: string, isLocal: boolean): Promise<Examined[]> {
  const milliseconds = isLocal ? LOCAL_CALL_MS : CALL_MS;
  const site = { origin, milliseconds };
  // It is the call that ends first, and says how.
  const bound = milliseconds + 1_000;
  const first = await attempt(() => ask(site, '/health/alive'), unreachable(site), bound);
  const up = 'value' in first ? alive(first.value) : first.fault;
  const secrets = valid(PARTS.signingSecrets)?.IDP_WEBHOOK_SIGNING_SECRET;
  const examine = (name: string, work: (answer: Answer) => Finding | Promise<Finding>) =>
    check(
      name,
      async () => {
        if (!('value' in first) || up.status !== 'ok') return skipped('the service does not answer');
        const came = await attempt(async () => work(first.value), unreachable(site), bound);
        return 'value' in came ? came.value : came.fault;
      },
      bound,
    );
  const noSecret = skipped('IDP_WEBHOOK_SIGNING_SECRET is not valid');
  const rows = await Promise.all([
    check('service', () => up),
    examine('service ready', () => ready(site)),
    examine('service guard', () => guarded(site)),
    examine('service webhook', () => (secrets ? acknowledged(site, secrets) : noSecret)),
    examine('service forgery', () => (secrets ? refused(site, secrets) : noSecret)),
    examine('service transport', (answer) => transport(site, answer)),
    examine('service unknown path', () => unknownPath(site)),
    examine('service headers', async () => {
      const rejected = await ask(site, '/users/v1/me', { headers: { authorization: 'Bearer a.b.c' } });
      return judgeHeaders(rejected.headers);
    }),
    examine('service query limit', async () =>
      judgeQueryLimit(await ask(site, `/health/alive?${LONG_QUERY}`)),
    ),
  ]);
  // Alone, so that nothing but the network counts.
  const latency = await examine('service latency', async () =>
    ok(`${await median(ROUNDS, () => ask(site, '/health/alive'))} ms from here, the median of ${ROUNDS}`),
  );
  return [...rows, latency];
}
