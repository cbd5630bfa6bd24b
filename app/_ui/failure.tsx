import type { ReactNode } from 'react';
import styles from './ui.module.css';

/** What a page shows that failed. The failure itself is in the server's log, under the reference. */
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
      <p>Something failed on our side. Nothing was changed; it is safe to try again.</p>
      {digest ? (
        <p>
          Reference: <code>{digest}</code>
        </p>
      ) : null}
      <div className="actions">{children}</div>
    </div>
  );
}
