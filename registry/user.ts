import { auth } from '@clerk/nextjs/server';
import { headers } from 'next/headers';
import { cache } from 'react';
import type { AuthenticatedContext } from './api/schemas';
import { resolveUser } from './guard';
import { readVerdict } from './idp/verdict';

/** Returns both ids of the user of the current page or action, or undefined without a session. Links a new user. */
export const getUser = cache(async () => resolveUser(await readVerdict(await headers())));

/** Returns the same as `getUser`. Without a session, redirects to the sign-in page. */
export async function requireUser(): Promise<AuthenticatedContext> {
  return (await getUser()) ?? (await auth()).redirectToSignIn();
}

/** Returns the person or agent (`type: 'agent'`) that acts for the user of the session, or undefined if the user acts. */
export const getActor = async () => (await readVerdict(await headers())).actor;
