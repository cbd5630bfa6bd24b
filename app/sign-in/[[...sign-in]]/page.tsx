import type { Metadata } from 'next';
import { SignIn } from '#lib/idp/components';
import { fillingAppearance } from '../../_ui/clerk-appearance';
import { SignInFrame } from '../../_ui/sign-in-frame';

export const metadata: Metadata = {
  title: 'Sign in',
  description: 'Sign in to see your internal user id.',
};

/** The provider's sign-in form. After the sign-in, it opens the page that required a session, or else the account page. */
export default function SignInPage() {
  return (
    <SignInFrame title="Sign in" size="sign-in">
      <SignIn appearance={fillingAppearance} />
    </SignInFrame>
  );
}
