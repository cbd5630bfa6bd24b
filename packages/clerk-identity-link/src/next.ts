import { auth, clerkClient } from '@clerk/nextjs/server';
import { headers } from 'next/headers';
import { unstable_rethrow } from 'next/navigation';
import type { NextRequest } from 'next/server';
import { cache } from 'react';
import { createGuardAction } from '../../../lib/core/action';
import { createGuards } from '../../../lib/core/guard';
import { createPages } from '../../../lib/core/pages';
import { createRoute } from '../../../lib/core/route';
import type { Tables } from './configuration';
import { type Core, type CoreOptions, HttpError, start } from './index';
import { readVerdict, sessionsOf } from './sessions';

export { HttpError };

export interface NextOptions extends Pick<CoreOptions, 'onError'> {
  /** Origins whose requests may use the session cookies, beside the own one. */
  readonly authorizedParties?: readonly string[];
}

/** Next.js throws outside of a request. */
const requestHeaders = () =>
  Promise.resolve()
    .then(headers)
    .catch(() => undefined);

/** Links users and organizations in Next.js, behind your own `clerkMiddleware`. Takes tables, or what `identityLink` returned. */
export function nextLink(given: Tables | Core, { authorizedParties = [], ...options }: NextOptions = {}) {
  const { link, core } = start(given, { headers: requestHeaders, clerk: clerkClient }, options);
  const pages = createPages(link, {
    verdict: async () => readVerdict(await headers()),
    signIn: async () => (await auth()).redirectToSignIn(),
    once: cache,
  });
  const route = createRoute<NextRequest>(link.observer, async (error) => unstable_rethrow(error));
  const { guard, guardTenant } = createGuards(link, sessionsOf(authorizedParties), route);
  return { ...core, ...pages, guard, guardTenant, guardAction: createGuardAction(pages.requireUser) };
}
