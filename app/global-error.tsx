'use client';

import './globals.css';
import { Failure } from './_ui/failure';

/**
 * Replaces the whole document when the root layout fails. Does not use the React providers of the layout, because they are part
 * of the layout that failed.
 */
export default function GlobalError({ error }: { error: Error & { digest?: string } }) {
  return (
    <html lang="en">
      <head>
        <title>Something failed · Identity link</title>
      </head>
      <body>
        <main>
          <Failure title="The site could not be shown." digest={error.digest}>
            {/* This link is a plain `<a>`, because the router failed together with the layout. */}
            <a className="button primary" href="/">
              Load the home page
            </a>
          </Failure>
        </main>
      </body>
    </html>
  );
}
