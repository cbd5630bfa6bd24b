import type { ReactNode } from 'react';
import { ClerkFailed, ClerkLoaded, ClerkLoading } from '#lib/idp/components';
import { FormPlaceholder } from './form-placeholder';
import { ReloadButton } from './reload-button';
import frame from './sign-in-frame.module.css';
import styles from './ui.module.css';

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
