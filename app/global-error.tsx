'use client';

import './globals.css';
import styles from './_ui/ui.module.css';

/** The last resort: replaces the whole document when the layout itself failed, so it leans on nothing but CSS. */
export default function GlobalError({ error }: { error: Error & { digest?: string } }) {
  return (
    <html lang="en">
      <head>
        <title>Something failed · Identity link</title>
      </head>
      <body>
        <main className={`shell ${styles['statement']}`}>
          <p className={styles['code']}>Error</p>
          <h1>The site could not be shown.</h1>
          <p>Something failed on our side. Nothing was changed; it is safe to try again.</p>
          {error.digest ? (
            <p>
              Reference: <code>{error.digest}</code>
            </p>
          ) : null}
          {/* A full load, as the router is gone with the layout. */}
          <a className="button primary" href="/">
            Load the start page
          </a>
        </main>
      </body>
    </html>
  );
}
