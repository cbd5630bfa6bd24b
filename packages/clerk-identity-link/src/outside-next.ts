import type { Tables } from './configuration';
import { type Core, HttpError, identityLink } from './index';
import type { nextLink as inNext, NextOptions } from './next';

export { HttpError };

const rejected = () =>
  Promise.reject(new Error('This works only in server code of Next.js, in the folder app/.'));
const rejecting = () => rejected;

/** The variant of `nextLink` for scripts, tests and the doctor: what needs a request of Next.js rejects. */
export const nextLink: typeof inNext = (given: Tables | Core, { onError }: NextOptions = {}) => {
  const { tables, options }: Pick<Core, 'tables' | 'options'> =
    'tables' in given ? given : { tables: given, options: {} };
  return {
    ...identityLink(tables, { ...options, onError: onError ?? options.onError }),
    guard: rejecting,
    guardAction: rejecting,
    guardTenant: rejecting,
    getActor: rejected,
    getTenant: rejected,
    getUser: rejected,
    requireUser: rejected,
  };
};
