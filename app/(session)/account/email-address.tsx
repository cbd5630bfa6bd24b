'use client';

import { useUser } from '#lib/clerk/browser';

/** Returns the e-mail address of the user, and a space until the identity provider's browser SDK has loaded. */
export function EmailAddress() {
  const { user } = useUser();
  return user?.primaryEmailAddress?.emailAddress ?? '\u00a0';
}
