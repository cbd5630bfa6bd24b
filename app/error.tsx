'use client';

import Link from 'next/link';
import { Failure } from './_ui/failure';

export default function PageError({
  error,
  retry,
}: {
  error: Error & { digest?: string };
  retry: () => void;
}) {
  return (
    <Failure title="This page could not be shown." digest={error.digest}>
      <button className="button primary" type="button" onClick={retry}>
        Try again
      </button>
      <Link className="button" href="/">
        Go to the home page
      </Link>
    </Failure>
  );
}
