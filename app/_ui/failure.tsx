import type { ReactNode } from 'react';
import styles from './ui.module.css';

/** Replaces a page that failed. The server logs a server error with the same digest. */
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
