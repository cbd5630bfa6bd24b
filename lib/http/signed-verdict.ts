import { createHmac, timingSafeEqual } from 'node:crypto';
import { environment } from '../base/env';
import { InvalidEnvironmentError } from '../base/errors';
import type { Verdict } from '../core/verdict';

/** Request header in which the middleware passes the signed verdict to routes and pages. A client cannot set it. */
export const VERDICT = 'x-identity-link-verdict';

/** Request headers that pass the auth state to a route: the signed verdict, and what an SDK of the provider reads. */
export type AuthState = ReadonlyArray<readonly [name: string, value: string]>;

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

/** Reads the verdict of a request. The signature proves that signVerdict() of this build wrote it, so it needs no schema. */
export function readVerdict(headers: Pick<Headers, 'get'>): Verdict {
  const [payload = '', mac = ''] = (headers.get(VERDICT) ?? '').split('.');
  const [given, expected] = [Buffer.from(mac), Buffer.from(macOf(payload))];
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return NO_VERDICT;
  const verdict: Verdict = JSON.parse(Buffer.from(payload, 'base64url').toString());
  return verdict;
}
