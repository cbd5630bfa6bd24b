import type { ReactNode } from 'react';
import styles from './ui.module.css';

/**
 * Replaces a page that failed. For a server error, shows the digest, an id that Next.js gives to the error. The server logs the
 * error with the same digest.
 */
export function Failure({
  title,
  digest,
  children,
}: {
  title: string;
  digest?: string | undefined;
  children: ReactNode;
}) {
  return (
    <div className={`shell ${styles['statement']}`} role="alert">
      <p className={styles['code']}>Error</p>
      <h1>{title}</h1>
      <p>
        An error occurred while this page was loading. Your data was not changed, and it is safe to try again.
      </p>
      {digest ? (
        <p>
          Reference: <code>{digest}</code>
        </p>
      ) : null}
      <div className="actions">{children}</div>
    </div>
  );
}
