import { auth, clerkClient } from '@clerk/nextjs/server';
import { headers } from 'next/headers';
import { unstable_rethrow } from 'next/navigation';
import type { NextRequest } from 'next/server';
import { cache } from 'react';
import { createGuardAction } from '../../../lib/core/action';
import { createGuards } from '../../../lib/core/guard';
import { createPages } from '../../../lib/core/pages';
import { createRoute } from '../../../lib/core/route';
import type { OnError, Tables } from './configuration';
import { type Core, HttpError, start } from './index';
import { readVerdict, sessionsOf } from './sessions';

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
export function nextLink(given: Tables | Core, { authorizedParties = [], onError }: NextOptions = {}) {
  const { tables, options }: Pick<Core, 'tables' | 'options'> =
    'tables' in given ? given : { tables: given, options: {} };
  const { link, core } = start(
    tables,
    { headers: requestHeaders, clerk: async () => options.clerk ?? clerkClient() },
    { ...options, onError: onError ?? options.onError },
  );
  const pages = createPages(link, {
    verdict: async () => readVerdict(await headers()),
    signIn: async () => (await auth()).redirectToSignIn(),
    once: cache,
  });
  const route = createRoute<NextRequest>(link.observer, async (error) => unstable_rethrow(error));
  const { guard, guardTenant } = createGuards(link, sessionsOf(authorizedParties), route);
  return { ...core, ...pages, guard, guardTenant, guardAction: createGuardAction(pages.requireUser) };
}
