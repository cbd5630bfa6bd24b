import { clerkClient } from '@clerk/nextjs/server';
import { headers } from 'next/headers';
import { guard } from '#lib/guard';
import { guardAction } from '#lib/guard-action';
import { guardTenant } from '#lib/guard-tenant';
import { getActor, getTenant, getUser, requireUser } from '#lib/user';
import type { OnError, Tables } from './configuration';
import { type Core, HttpError, start } from './index';

export { HttpError };

export interface NextOptions {
  /** Origins whose requests may use the session cookies, beside the own one. */
  readonly authorizedParties?: readonly string[];
  readonly onError?: OnError;
}

/** Next.js throws outside of a request. */
const requestHeaders = async () => {
  try {
    return await headers();
  } catch {
    return undefined;
  }
};

/** Links users and organizations in Next.js, behind your own `clerkMiddleware`. Takes tables, or what `identityLink` returned. */
export const nextLink = (given: Tables | Core, options: NextOptions = {}) => ({
  ...start({
    ...options,
    tables: 'tables' in given ? given.tables : given,
    clerk: clerkClient,
    headers: requestHeaders,
  }),
  guard,
  guardAction,
  guardTenant,
  getActor,
  getTenant,
  getUser,
  requireUser,
});
