import type { Metadata } from 'next';
import { headers } from 'next/headers';
import { redirect } from 'next/navigation';
import { Suspense } from 'react';
import { readVerdict } from '#lib/idp/verdict';
import { getTenant } from '#lib/user';
import styles from './account.module.css';
import { ApiConsole } from './api-console';
import { Id, LinkPanel } from './link-panel';

export const metadata: Metadata = {
  title: 'Account',
  description:
    'Your e-mail address, your id at the identity provider, your internal id, and forms that call the API.',
  robots: { index: false },
};

/** Shows the tenant id. After an error, omits it, because `LinkPanel` reports the failure. */
async function TenantId() {
  const tenant = await getTenant().catch(() => undefined);
  return tenant ? <Id name="Tenant id" value={tenant.tenantId} /> : null;
}

/** Shows both ids of the active organization. */
function Organization({ id }: { id: string }) {
  return (
    <section aria-labelledby="organization" className={styles['panel']}>
      <h2 id="organization">Your organization</h2>
      <dl className={`card ${styles['ids']}`}>
        <Id name="Identity-provider organization id" value={id} />
        <Suspense fallback={<Id name="Tenant id" value={undefined} />}>
          <TenantId />
        </Suspense>
      </dl>
    </section>
  );
}

/** The account page. Redirects a visitor without a verified session to the sign-in page. */
export default async function AccountPage() {
  const { user, organization } = readVerdict(await headers());
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
      {organization ? <Organization id={organization.id} /> : null}
      <ApiConsole identityProviderUserId={user} />
    </div>
  );
}
