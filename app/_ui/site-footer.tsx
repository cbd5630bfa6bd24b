import Link from 'next/link';
import styles from './ui.module.css';

export function SiteFooter() {
  return (
    <footer className={styles['footer']}>
      <div className="shell">
        <div className={styles['foot']}>
          <p>Identity link: one internal id for every user of your identity provider.</p>
          <Link href="/docs" prefetch={false}>
            API
          </Link>
        </div>
      </div>
    </footer>
  );
}
