import { readVerdict } from './auth-state';
import { PAGE_PATH } from './sanitize-request';
import { reasonOfSdk } from './sdk-reasons';
import { auth } from './server';
import { sessionUserOf, type Verdict } from './session-user';

/**
 * Reasons that Clerk's SDK reports for a browser without session cookies. For test keys, the reason is `dev-browser-missing`.
 */
const WITHOUT_COOKIES: ReadonlySet<string> = new Set([
  'session-token-and-uat-missing',
  'dev-browser-missing',
]);

/** Returns the user of the verified session, or the reason why there is no such user. Supports page and API requests. */
export async function verdictOf(headers: Pick<Headers, 'get' | 'has'>): Promise<Verdict> {
  // The middleware sets this header only for pages.
  if (!headers.has(PAGE_PATH)) return readVerdict(headers);
  const verdict = sessionUserOf(await auth());
  const word = headers.get('x-clerk-auth-reason');
  if (verdict.user !== undefined || !word) return verdict;
  return { user: undefined, reason: WITHOUT_COOKIES.has(word) ? 'no-credential' : reasonOfSdk(word) };
}
