import styles from './ui.module.css';

/** The foot of every page. */
export function SiteFooter() {
  return (
    <footer className={styles['footer']}>
      <div className="shell">
        <p>Identity link: one internal id for every user of your identity provider.</p>
      </div>
    </footer>
  );
}
