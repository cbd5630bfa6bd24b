import type { Metadata } from 'next';
import { SignIn } from '#lib/idp/components';
import { fillingAppearance } from '../../_ui/clerk-appearance';
import { SignInFrame } from '../../_ui/sign-in-frame';

export const metadata: Metadata = {
  title: 'Sign in',
  description: 'Sign in to see which internal user id your account is linked to.',
};

/** The provider's own sign-in, which leads on to the account or to where the user was headed. */
export default function SignInPage() {
  return (
    <SignInFrame title="Sign in" size="sign-in">
      <SignIn appearance={fillingAppearance} />
    </SignInFrame>
  );
}
