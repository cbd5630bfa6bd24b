import type { Metadata } from 'next';
import { UserButton } from '#lib/clerk/components';
import { getTenant, requireUser } from '#lib/user';
import { CopyButton } from '../../_ui/copy-button';
import { Hydrated } from '../hydrated';
import styles from './account.module.css';
import { ApiConsole } from './api-console';
import { EmailAddress } from './email-address';

export const metadata: Metadata = {
  title: 'Account',
  description:
    'Your e-mail address, your id at the identity provider, your internal id, and forms that call the API.',
  robots: { index: false },
};

interface IdsProps {
  readonly id: string;
  readonly title: string;
  readonly ids: Readonly<Record<string, string>>;
}

const Ids = ({ id, title, ids }: IdsProps) => (
  <section aria-labelledby={id} className={styles['section']}>
    <h2 id={id}>{title}</h2>
    <dl className={`card ${styles['ids']}`}>
      {Object.entries(ids).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <code>{value}</code>
            <CopyButton name={name} value={value} />
          </dd>
        </div>
      ))}
    </dl>
  </section>
);

export default async function AccountPage() {
  const { identityProviderUserId, userId } = await requireUser();
  const tenant = await getTenant();
  return (
    <div className={`shell ${styles['account']}`}>
      <div className={styles['heading']}>
        <h1>Your account</h1>
        <span className={styles['avatar']}>
          <Hydrated fallback={null}>
            <UserButton />
          </Hydrated>
        </span>
        <p>
          <Hydrated fallback={'\u00a0'}>
            <EmailAddress />
          </Hydrated>
        </p>
      </div>
      <Ids
        id="ids"
        title="Your ids"
        ids={{ 'Identity-provider user id': identityProviderUserId, 'Internal user id': userId }}
      />
      {tenant && (
        <Ids
          id="organization"
          title="Your organization"
          ids={{
            'Identity-provider organization id': tenant.identityProviderOrganizationId,
            'Tenant id': tenant.tenantId,
          }}
        />
      )}
      <ApiConsole identityProviderUserId={identityProviderUserId} />
    </div>
  );
}
