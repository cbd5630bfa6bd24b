import { auth } from '@clerk/nextjs/server';
import { headers } from 'next/headers';
import { cache } from 'react';
import type { AuthenticatedContext } from './api/schemas';
import { resolveContext } from './guard';

/** Returns both ids of the user of the current page or action, or undefined without a session. Links a new user. */
export const getUser = cache(async () => resolveContext(await headers()));

/** Returns the same as `getUser`. Without a session, redirects to the sign-in page. */
export async function requireUser(): Promise<AuthenticatedContext> {
  return (await getUser()) ?? (await auth()).redirectToSignIn();
}
