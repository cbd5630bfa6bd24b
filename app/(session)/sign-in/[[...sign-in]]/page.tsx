import type { Metadata } from 'next';
import { redirect } from 'next/navigation';
import { SignIn } from '#lib/clerk/components';
import { getUser } from '#lib/user';
import { SignInFrame } from '../../sign-in-frame';

export const metadata: Metadata = {
  title: 'Sign in',
  description: 'Sign in to see your internal user id.',
};

const ANY_ORIGIN = 'http://site.invalid';

/** Returns the path and the query of a URL that starts with a slash and stays on this site. Otherwise returns undefined. */
function ownPath(value: string | string[] | undefined): string | undefined {
  if (typeof value !== 'string' || !value.startsWith('/') || !URL.canParse(value, ANY_ORIGIN))
    return undefined;
  const { origin, pathname, search } = new URL(value, ANY_ORIGIN);
  // `//host` and `/\host` lead to another site. `/.//host` stays on this site, but `URL` shortens it to `//host`.
  return origin === ANY_ORIGIN && !pathname.startsWith('//') ? pathname + search : undefined;
}

/**
 * After the sign-in, the form opens the page in the query parameter `redirect_url`, and without it the account page.
 *
 * At the first step of the form, redirects a visitor who already has a session to the page in `redirect_url`. For example, a
 * browser without JavaScript submits a form after the session token has expired, and the service redirects it to the sign-in
 * page. Before the browser reaches the sign-in page, the provider renews the token, so that the visitor has a session.
 */
export default async function SignInPage({
  params,
  searchParams,
}: {
  params: Promise<{ 'sign-in'?: string[] }>;
  searchParams: Promise<Record<string, string | string[]>>;
}) {
  const target = ownPath((await searchParams)['redirect_url']);
  // For its later steps, the provider's form adds segments to the path, for example `/sign-in/factor-one`. At a later step,
  // this page does not redirect, because the form opens the page in `redirect_url` at the end.
  const isFirstStep = (await params)['sign-in'] === undefined;
  if (isFirstStep && target !== undefined && (await getUser())) redirect(target);
  return <SignInFrame title="Sign in" size="sign-in" Form={SignIn} />;
}
