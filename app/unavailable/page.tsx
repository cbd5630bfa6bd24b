'use client';

import PageError from '../error';

/** Shown in place of a page, with status 503, if the session of the visitor could not be checked (lib/clerk/page-session.ts). */
export default function Unavailable() {
  return <PageError error={new Error()} retry={() => window.location.reload()} />;
}
