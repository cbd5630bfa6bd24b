import type { ReactNode } from 'react';
import { mailsOnConsole } from '#lib/clerk/browser-settings';
import { ClerkFailed, ClerkLoaded, ClerkLoading } from '#lib/clerk/components';
import { FormPlaceholder } from './form-placeholder';
import { MailBanner } from './mail-banner';
import { ReloadButton } from './reload-button';
import frame from './sign-in-frame.module.css';
import styles from './ui.module.css';

/** Reserves space for a form of the identity provider, and shows an error if the form cannot be loaded. */
export function SignInFrame({
  title,
  size,
  children,
}: {
  title: string;
  size: 'sign-in' | 'sign-up';
  children: ReactNode;
}) {
  const consoleAddress = mailsOnConsole();
  return (
    <div className={`shell ${frame['page']}`}>
      {consoleAddress ? <MailBanner consoleAddress={consoleAddress} /> : null}
      <div className={`${frame['room']} ${frame[size]}`}>
        <ClerkLoading>
          <FormPlaceholder title={title} />
        </ClerkLoading>
        <ClerkFailed>
          <div className={`card ${styles['notice']} ${styles['trouble']}`} role="alert">
            <h1>The form could not be loaded</h1>
            <p>The form comes from the identity provider, which did not respond. Check your connection.</p>
            <ReloadButton />
          </div>
        </ClerkFailed>
        <ClerkLoaded>{children}</ClerkLoaded>
      </div>
      <noscript>
        <p>The form needs JavaScript.</p>
      </noscript>
    </div>
  );
}
