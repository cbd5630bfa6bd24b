'use client';

import Link from 'next/link';
import styles from './_ui/ui.module.css';

/** Shown in place of a page that failed. The failure itself is in the server's log, under the reference. */
export default function PageError({
  error,
  retry,
}: {
  error: Error & { digest?: string };
  retry: () => void;
}) {
  return (
    <div className={`shell ${styles['statement']}`} role="alert">
      <p className={styles['code']}>Error</p>
      <h1>This page could not be shown.</h1>
      <p>Something failed on our side. Nothing was changed; it is safe to try again.</p>
      {error.digest ? (
        <p>
          Reference: <code>{error.digest}</code>
        </p>
      ) : null}
      <div className={styles['actions']}>
        <button className="button primary" type="button" onClick={retry}>
          Try again
        </button>
        <Link className="button" href="/">
          Go to the start page
        </Link>
      </div>
    </div>
  );
}
