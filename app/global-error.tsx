'use client';

import './globals.css';
import { Failure } from './_ui/failure';

/** The last resort: replaces the whole document when the layout itself failed, so it leans on nothing but CSS. */
export default function GlobalError({ error }: { error: Error & { digest?: string } }) {
  return (
    <html lang="en">
      <head>
        <title>Something failed · Identity link</title>
      </head>
      <body>
        <main>
          <Failure title="The site could not be shown." digest={error.digest}>
            {/* A full load, as the router is gone with the layout. */}
            <a className="button primary" href="/">
              Load the start page
            </a>
          </Failure>
        </main>
      </body>
    </html>
  );
}
