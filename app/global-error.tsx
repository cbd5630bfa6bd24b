'use client';

import './globals.css';
import { Failure } from './_ui/failure';

/** Replaces the document when the root layout fails, without the React providers, which are part of that layout. */
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
