'use client';

import Link from 'next/link';
import { UserButton, useAuth } from '#lib/idp/browser';
import styles from './ui.module.css';

/** Shows links to sign in and to sign up. A visitor with a session gets a link to the account and the user button instead. */
export function AccountMenu() {
  const { userId } = useAuth();
  if (!userId) {
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
