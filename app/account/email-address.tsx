'use client';

import { useUser } from '#lib/clerk/browser';

/** Shows the e-mail address of the user. Reserves its line until the identity provider's browser SDK has loaded. */
export function EmailAddress() {
  const { user } = useUser();
  return <p>{user?.primaryEmailAddress?.emailAddress ?? '\u00a0'}</p>;
}
