import type { ReactNode } from 'react';
import { mailsOnConsole } from '#lib/idp/browser-settings';
import { ClerkFailed, ClerkLoaded, ClerkLoading } from '#lib/idp/components';
import { FormPlaceholder } from './form-placeholder';
import { ReloadButton } from './reload-button';
import frame from './sign-in-frame.module.css';
import styles from './ui.module.css';

/** On the local stack no mail leaves the machine: says where the codes are to be read. */
function MailHint() {
  const address = mailsOnConsole();
  if (address === undefined) return null;
  return (
    <p className={frame['hint']}>
      Local stack: no mail is sent. Codes appear on the{' '}
      <a href={address} target="_blank" rel="noreferrer">
        identity provider’s console
      </a>
      .
    </p>
  );
}

/**
 * The place of a prebuilt component of the provider: it keeps the room while the component is on its way, and says so
 * if it does not come.
 */
export function SignInFrame({
  title,
  size,
  children,
}: {
  title: string;
  size: 'sign-in' | 'sign-up';
  children: ReactNode;
}) {
  return (
    <div className={`shell ${frame['page']}`}>
      <MailHint />
      <div className={`${frame['room']} ${frame[size]}`}>
        <ClerkLoading>
          <FormPlaceholder title={title} />
        </ClerkLoading>
        <ClerkFailed>
          <div className={`card ${styles['notice']} ${styles['trouble']}`} role="alert">
            <h1>The sign-in service did not answer</h1>
            <p>
              The form comes from the identity provider, which could not be reached. Check your connection.
            </p>
            <ReloadButton />
          </div>
        </ClerkFailed>
        <ClerkLoaded>{children}</ClerkLoaded>
      </div>
      <noscript>
        <p>Signing in needs JavaScript.</p>
      </noscript>
    </div>
  );
}
