import type { Metadata } from 'next';
import { headers } from 'next/headers';
import { redirect } from 'next/navigation';
import { readVerdict } from '#lib/idp/verdict';
import styles from './account.module.css';
import { ApiConsole } from './api-console';
import { LinkPanel } from './link-panel';

export const metadata: Metadata = {
  title: 'Account',
  description:
    'Your e-mail address, your id at the identity provider, your internal id, and forms that call the API.',
  robots: { index: false },
};

/** The account page. Redirects a visitor without a verified session to the sign-in page. */
export default async function AccountPage() {
  const { user } = readVerdict(await headers());
  if (user === undefined) redirect('/sign-in?redirect_url=%2Faccount');
  return (
    <div className={`shell ${styles['account']}`}>
      <div className={styles['intro']}>
        <h1>Your account</h1>
        <p>
          You have an id at the identity provider and an internal id in this service. This page requests both
          ids from the API with your session.
        </p>
      </div>
      <LinkPanel />
      <ApiConsole identityProviderUserId={user} />
    </div>
  );
}
