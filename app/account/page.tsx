import type { Metadata } from 'next';
import { redirect } from 'next/navigation';
import { auth } from '#lib/idp/server';
import styles from './account.module.css';
import { ApiConsole } from './api-console';
import { LinkPanel } from './link-panel';

export const metadata: Metadata = {
  title: 'Account',
  description: 'Which internal user id your account is linked to, and how that came about.',
  robots: { index: false },
};

/** Shown to a verified session only; everybody else is sent to sign in. */
export default async function AccountPage() {
  const { isAuthenticated, userId } = await auth();
  if (!isAuthenticated) redirect('/sign-in?redirect_url=%2Faccount');
  return (
    <div className={`shell ${styles['account']}`}>
      <div className={styles['intro']}>
        <h1>Your link</h1>
        <p>
          The identity provider knows you by one id, this service by another. This page asks the service for
          both, as any client would.
        </p>
      </div>
      <LinkPanel />
      <ApiConsole identityProviderUserId={userId} />
    </div>
  );
}
