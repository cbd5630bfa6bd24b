import type { Metadata } from 'next';
import { SignIn } from '#lib/idp/components';
import { fillingAppearance } from '../../_ui/clerk-appearance';
import { SignInFrame } from '../../_ui/sign-in-frame';

export const metadata: Metadata = {
  title: 'Sign in',
  description: 'Sign in to see your internal user id.',
};

/** The provider's sign-in form. It continues to the account or to the page that required the session. */
export default function SignInPage() {
  return (
    <SignInFrame title="Sign in" size="sign-in">
      <SignIn appearance={fillingAppearance} />
    </SignInFrame>
  );
}
