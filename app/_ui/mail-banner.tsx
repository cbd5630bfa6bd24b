'use client';

import { usePathname } from 'next/navigation';
import styles from './sign-in-frame.module.css';

/** Says where to find the codes on the local stack, which does not send mail. */
export function MailBanner({ consoleAddress }: { consoleAddress: string }) {
  const isCodeStep = usePathname().includes('/verify');
  return (
    <aside aria-label="Local stack" className={styles['banner']}>
      <p>
        {isCodeStep ? (
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
        className={isCodeStep ? 'button primary' : 'button'}
        href={consoleAddress}
        target="_blank"
        rel="noreferrer"
      >
        Open the console
      </a>
    </aside>
  );
}
