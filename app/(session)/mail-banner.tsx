'use client';

import { useSyncExternalStore } from 'react';
import styles from './sign-in-frame.module.css';

/** Returns true while the identity provider's form requires a verification code. */
const isCodeStep = () => window.location.pathname.includes('/verify');

/**
 * Calls `callback` after each navigation. Uses the Navigation API, because Next.js does not notice when the provider's form
 * changes the address. In a browser without this API, the text of the banner does not change after a navigation.
 */
function onNavigation(callback: () => void): () => void {
  if (!('navigation' in window)) return () => {};
  const { navigation } = window;
  // When Next.js navigates, the browser fires `currententrychange` while React commits an update. React rejects state changes
  // during the commit, so `callback` runs later.
  const onChange = () => queueMicrotask(callback);
  navigation.addEventListener('currententrychange', onChange);
  return () => navigation.removeEventListener('currententrychange', onChange);
}

/**
 * Says where to find verification codes. The local stack (`npm run dev`) does not send mail. The codes appear on the console, a
 * web page of the identity provider's emulator.
 */
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
