import { headers } from 'next/headers';
import { cache } from 'react';
import { redirectToSignIn } from './clerk/sign-in';
import { readVerdict } from './clerk/verdict';
import { createPages } from './core/pages';
import { logUserLookup } from './http/request-log';
import { link } from './link';

export const { getUser, requireUser, getTenant, getActor } = createPages(link, {
  verdict: async () => readVerdict(await headers()),
  signIn: async () => redirectToSignIn(await headers()),
  once: cache,
  lookUp: async (work) => logUserLookup(await headers(), work),
});
