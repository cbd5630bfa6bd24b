import type { Metadata } from 'next';
import { redirect } from 'next/navigation';
import { SignIn } from '#lib/idp/components';
import { getUser } from '#lib/user';
import { fillingAppearance } from '../../_ui/clerk-appearance';
import { SignInFrame } from '../../_ui/sign-in-frame';

export const metadata: Metadata = {
  title: 'Sign in',
  description: 'Sign in to see your internal user id.',
};

const ANY_ORIGIN = 'http://site.invalid';

/** Returns the path and the query of a URL of this site, which must start with a slash. Returns undefined for any other value. */
function ownPath(value: string | string[] | undefined): string | undefined {
  if (typeof value !== 'string' || !value.startsWith('/') || !URL.canParse(value, ANY_ORIGIN))
    return undefined;
  // `//host` and `/\host` lead to another site.
  const { origin, pathname, search } = new URL(value, ANY_ORIGIN);
  return origin === ANY_ORIGIN ? pathname + search : undefined;
}

/**
 * The provider's sign-in form. After the sign-in, it opens the page that required a session, or else the account page.
 * Redirects a visitor with a session to the page that required it. Without JavaScript, a form of that page leads here if the
 * session has expired, and the provider then renews the session.
 */
export default async function SignInPage({
  params,
  searchParams,
}: {
  params: Promise<{ 'sign-in'?: string[] }>;
  searchParams: Promise<Record<string, string | string[]>>;
}) {
  const target = ownPath((await searchParams)['redirect_url']);
  const isFirstStep = (await params)['sign-in'] === undefined;
  if (isFirstStep && target !== undefined && (await getUser())) redirect(target);
  return (
    <SignInFrame title="Sign in" size="sign-in">
      <SignIn appearance={fillingAppearance} />
    </SignInFrame>
  );
}
