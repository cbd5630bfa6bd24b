import type { Metadata } from 'next';
import { LoginForm } from './_ui/login-form';

export const metadata: Metadata = { title: 'Log in', robots: { index: false } };

/** Signs in at Better Auth. The page `/sign-in` signs in at Clerk. */
export default function LoginPage() {
  return (
    <div className="shell">
      <h1>Log in</h1>
      <LoginForm />
    </div>
  );
}
