import { headers } from 'next/headers';
import Link from 'next/link';
import { readVerdict } from '#lib/http/signed-verdict';
import { mainProvider } from '#lib/main-provider';
import styles from './ui.module.css';

/** The links load a document, so that the identity provider can renew an expired session. */
const AccountMenu = ({ isSignedIn }: { isSignedIn: boolean }) => (
  <nav aria-label="Account" className={styles['menu']}>
    {isSignedIn ? (
      <a className={styles['menuLink']} href={mainProvider.paths.account}>
        Account
      </a>
    ) : (
      <>
        <a className={styles['menuLink']} href={mainProvider.paths.signIn}>
          Sign in
        </a>
        <a className={`button ${styles['small']}`} href={mainProvider.paths.signUp}>
          Sign up
        </a>
      </>
    )}
  </nav>
);

/**
 * Has no account menu if the session could not be checked. On the local stack (`npm run dev`), links to the console, a web page
 * of the identity provider's emulator.
 */
export async function SiteHeader() {
  const { user, isUnchecked } = readVerdict(await headers());
  const consoleAddress = mainProvider.consoleAddress?.();
  return (
    <header>
      <div className={`shell ${styles['bar']}`}>
        <Link className={styles['wordmark']} href="/">
          {/* The logo: two linked rings in the current text color. */}
          <svg
            aria-hidden="true"
            width="30"
            height="18"
            viewBox="0 0 30 18"
            fill="none"
            stroke="currentColor"
          >
            <circle cx="9" cy="9" r="7" strokeWidth="2.5" />
            <circle cx="21" cy="9" r="7" strokeWidth="2.5" />
          </svg>
          <span>Identity link</span>
        </Link>
        <nav aria-label="Main" className={`${styles['menu']} ${styles['main']}`}>
          {/* Few visitors follow this link, so the pages do not prefetch it. */}
          <Link className={styles['menuLink']} href="/docs" prefetch={false}>
            API
          </Link>
          {consoleAddress ? (
            <a className={styles['menuLink']} href={consoleAddress}>
              Console
            </a>
          ) : null}
        </nav>
        {isUnchecked ? null : <AccountMenu isSignedIn={user !== undefined} />}
      </div>
    </header>
  );
}
