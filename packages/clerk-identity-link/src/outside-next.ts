import { HttpError, identityLink } from './index';
import type { nextLink as inNext } from './next';

export { HttpError };

const rejected = () =>
  Promise.reject(new Error('This works only in server code of Next.js, in the folder app/.'));
const rejecting = () => rejected;

/** The variant of `nextLink` for scripts, tests and the doctor: what needs a request of Next.js rejects. */
export const nextLink: typeof inNext = (given, options) => ({
  ...identityLink(given, options),
  guard: rejecting,
  guardAction: rejecting,
  guardTenant: rejecting,
  getActor: rejected,
  getTenant: rejected,
  getUser: rejected,
  requireUser: rejected,
});
