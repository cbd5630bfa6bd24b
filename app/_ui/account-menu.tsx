'use client';

import Link from 'next/link';
import { UserButton, useAuth } from '#lib/idp/browser';
import styles from './ui.module.css';

/**
 * Shows a signed-in visitor a link to the account and the identity provider's user button. Shows any other visitor links to
 * sign in and to sign up.
 */
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
