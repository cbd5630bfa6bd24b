import { headers } from 'next/headers';
import Link from 'next/link';
import { notFound } from 'next/navigation';
import { readVerdict } from '#lib/http/signed-verdict';
import { Failure } from '../_ui/failure';
import { ReloadButton } from '../_ui/reload-button';

/** Shown in place of a page, with status 503, if the session of the visitor could not be checked (lib/clerk/page-session.ts). */
export default async function Unavailable() {
  if (!readVerdict(await headers()).isUnchecked) notFound();
  return (
    <Failure title="This page could not be shown.">
      <ReloadButton />
      <Link className="button" href="/">
        Go to the home page
      </Link>
    </Failure>
  );
}
