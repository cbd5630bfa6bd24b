import { createHmac, timingSafeEqual } from 'node:crypto';
import * as z from 'zod/mini';
import { environment } from '../base/env';
import { InvalidEnvironmentError } from '../base/errors';
import { fieldsOf } from '../core/values';
import type { Verdict } from '../core/verdict';

const Actor = z.object({ id: z.string(), type: z.exactOptional(z.string()) });
const provider = z.optional(z.string());
const Session = z.object({
  provider,
  user: z.string(),
  issuedAt: z.optional(z.number()),
  expiresAt: z.optional(z.number()),
  organization: z.optional(z.object({ id: z.string(), role: z.string() })),
  actor: z.optional(Actor),
});
const reason = z.string();
const AccessToken = z.object({
  reason,
  expiresAt: z.optional(z.number()),
  accessToken: z.object({
    user: z.string(),
    clientId: z.string(),
    scopes: z.array(z.string()),
    audiences: z.array(z.string()),
    actor: z.optional(Actor),
  }),
});
const Unchecked = z.object({
  provider,
  reason,
  isUnchecked: z.literal(true),
  isAccessToken: z.optional(z.boolean()),
});
const Without = z.object({ provider, reason });

/** Parses a verdict by its fields. A union of the schemas would try each of them. */
function parseVerdict(value: unknown): Verdict {
  const { user, accessToken, isUnchecked } = fieldsOf(value);
  if (user !== undefined) return Session.parse(value);
  if (accessToken !== undefined) return AccessToken.parse(value);
  return isUnchecked === undefined ? Without.parse(value) : Unchecked.parse(value);
}

/** Request header in which the middleware passes the signed verdict to routes and pages. A client cannot set it. */
export const VERDICT = 'x-identity-link-verdict';

/** Request header with the path of the requested page. The middleware does not set it for an API request. */
export const PAGE_PATH = 'x-identity-link-path';

function macOf(payload: string): string {
  const { IDP_SECRET_KEY, VERDICT_SIGNING_KEY: key = IDP_SECRET_KEY } = environment();
  // Anyone could sign with an empty key.
  if (key === undefined) throw new InvalidEnvironmentError(['VERDICT_SIGNING_KEY is missing']);
  return createHmac('sha256', key).update(payload).digest('base64url');
}

/** Returns the value of the verdict header. Its signature proves that the middleware set it, and not a client. */
export function signVerdict(verdict: Verdict): string {
  const payload = Buffer.from(JSON.stringify(verdict)).toString('base64url');
  return `${payload}.${macOf(payload)}`;
}

/** The verdict on a request that bypassed the middleware. */
export const NO_VERDICT: Verdict = { reason: 'no-verdict' };

/** Reads the verdict of a request. */
export function readVerdict(headers: Pick<Headers, 'get'>): Verdict {
  const [payload = '', mac = ''] = (headers.get(VERDICT) ?? '').split('.');
  const [given, expected] = [Buffer.from(mac), Buffer.from(macOf(payload))];
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return NO_VERDICT;
  return parseVerdict(JSON.parse(Buffer.from(payload, 'base64url').toString()));
}
