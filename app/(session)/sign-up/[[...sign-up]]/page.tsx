import type { Metadata } from 'next';
import { SignUp } from '#lib/clerk/components';
import { SignInFrame } from '../../sign-in-frame';

export const metadata: Metadata = {
  title: 'Sign up',
  description: 'Create an account and see its internal user id.',
};

/** After the sign-up, the form opens the page in the query parameter `redirect_url`, and without it the account page. */
export default function SignUpPage() {
  return <SignInFrame title="Sign up" size="sign-up" Form={SignUp} />;
}
