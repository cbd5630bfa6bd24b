import type { Metadata } from 'next';
import Link from 'next/link';
import styles from './_ui/ui.module.css';

export const metadata: Metadata = { title: 'Page not found', robots: { index: false } };

/** Shown for an unknown path. Unknown paths of the API, for example below `/users`, get a JSON response instead. */
export default function NotFound() {
  return (
    <div className={`shell ${styles['statement']}`}>
      <p className={styles['code']}>404</p>
      <h1>There is no page here.</h1>
      <p>The address may be mistyped, or the page may have moved.</p>
      <Link className="button primary" href="/">
        Go to the home page
      </Link>
    </div>
  );
}
