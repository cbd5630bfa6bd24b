import { headers } from 'next/headers';
import { redirect } from 'next/navigation';
import { cache } from 'react';
import { HttpError } from './core/error';
import { createPages } from './core/pages';
import { logUserLookup } from './http/request-log';
import { PAGE_PATH, readVerdict } from './http/signed-verdict';
import { link } from './link';
import { mainProvider } from './main-provider';

/** Redirects from a page to the sign-in page, which returns the browser to the page. In a route, throws an HttpError 401. */
function redirectToSignIn(path: string | null): never {
  if (path === null) throw new HttpError(401, 'Unauthorized');
  redirect(`${mainProvider.paths.signIn}?redirect_url=${encodeURIComponent(path)}`);
}

export const { getUser, requireUser, getTenant, getActor } = createPages(link, {
  verdict: async () => readVerdict(await headers()),
  signIn: async () => redirectToSignIn((await headers()).get(PAGE_PATH)),
  once: cache,
  lookUp: async (work) => logUserLookup(await headers(), work),
});
