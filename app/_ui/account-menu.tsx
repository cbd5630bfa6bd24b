'use client';

import Link from 'next/link';
import { UserButton, useUser } from '#lib/clerk/browser';
import styles from './ui.module.css';

/** `isSignedIn` counts until the identity provider's browser SDK has loaded. */
export function AccountMenu({ isSignedIn }: { isSignedIn: boolean }) {
  const user = useUser();
  if (!(user.isLoaded ? user.isSignedIn : isSignedIn)) {
    return (
      <nav aria-label="Account" className={styles['menu']}>
        <Link className={styles['menuLink']} href="/sign-in">
          Sign in
        </Link>
        <Link className={`button ${styles['small']}`} href="/sign-up">
          Sign up
        </Link>
      </nav>
    );
  }
  return (
    <nav aria-label="Account" className={styles['menu']}>
      <Link className={styles['menuLink']} href="/account">
        Account
      </Link>
      <span className={styles['avatar']}>
        <UserButton />
      </span>
    </nav>
  );
}
