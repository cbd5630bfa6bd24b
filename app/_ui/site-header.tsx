import Link from 'next/link';
import { AccountMenu } from './account-menu';
import { Mark } from './mark';
import styles from './ui.module.css';

/** The banner of every page: where one is, and who one is. */
export function SiteHeader() {
  return (
    <header>
      <div className={`shell ${styles['bar']}`}>
        <Link className={styles['wordmark']} href="/">
          <Mark />
          Identity link
        </Link>
        <AccountMenu />
      </div>
    </header>
  );
}
