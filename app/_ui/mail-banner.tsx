'use client';

import { useSyncExternalStore } from 'react';
import styles from './sign-in-frame.module.css';

/** Returns true while the provider's form requires a verification code. */
const isCodeStep = () => window.location.pathname.includes('/verify');

/**
 * Calls `callback` after each navigation. The provider's form changes the address in a way that Next.js does not notice. In a
 * browser without the Navigation API, the banner keeps its first text.
 */
function onNavigation(callback: () => void): () => void {
  if (!('navigation' in window)) return () => {};
  const { navigation } = window;
  // Next.js navigates while React commits an update, and React rejects state changes at that time.
  const onChange = () => queueMicrotask(callback);
  navigation.addEventListener('currententrychange', onChange);
  return () => navigation.removeEventListener('currententrychange', onChange);
}

/** Says where to find verification codes. The local stack does not send mail. The console of its emulator shows the codes. */
export function MailBanner({ consoleAddress }: { consoleAddress: string }) {
  const needsCode = useSyncExternalStore(onNavigation, isCodeStep, () => false);
  return (
    <aside aria-label="Local stack" className={styles['banner']}>
      <p>
        {needsCode ? (
          <>
            <strong>Your code is on the console.</strong> The local stack does not send mail.
          </>
        ) : (
          <>
            <strong>This is the local stack.</strong> It does not send mail. Codes appear on the console.
          </>
        )}
      </p>
      <a
        className={needsCode ? 'button primary' : 'button'}
        href={consoleAddress}
        target="_blank"
        rel="noreferrer"
      >
        Open the console
      </a>
    </aside>
  );
}
