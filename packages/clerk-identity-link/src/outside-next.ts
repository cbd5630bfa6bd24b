import { createClerkClient } from '@clerk/backend';
import type { Tables } from './configuration';
import { type Core, HttpError, start } from './index';
import type { nextLink as inNext, NextOptions } from './next';

export { HttpError };

const rejected = () =>
  Promise.reject(new Error('This works only in server code of Next.js, in the folder app/.'));
const rejecting = () => rejected;

/** The variant of `nextLink` for scripts, tests and the doctor: what needs a request of Next.js rejects. */
export const nextLink: typeof inNext = (given: Tables | Core, options: NextOptions = {}) => ({
  ...start({
    ...options,
    tables: 'tables' in given ? given.tables : given,
    clerk: async () => {
      const { CLERK_SECRET_KEY, CLERK_API_URL } = process.env;
      return createClerkClient({
        ...(CLERK_SECRET_KEY ? { secretKey: CLERK_SECRET_KEY } : {}),
        ...(CLERK_API_URL ? { apiUrl: CLERK_API_URL } : {}),
      });
    },
    headers: async () => undefined,
  }),
  guard: rejecting,
  guardAction: rejecting,
  guardTenant: rejecting,
  getActor: rejected,
  getTenant: rejected,
  getUser: rejected,
  requireUser: rejected,
});
