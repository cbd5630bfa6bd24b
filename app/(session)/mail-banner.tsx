import styles from './sign-in-frame.module.css';

/**
 * Says where to find verification codes. The local stack (`npm run dev`) does not send mail. The codes appear on the console, a
 * web page of the identity provider's emulator.
 */
export const MailBanner = ({ consoleAddress }: { consoleAddress: string }) => (
  <aside aria-label="Local stack" className={styles['banner']}>
    <p>
      <strong>This is the local stack.</strong> It does not send mail. Codes appear on the console.
    </p>
    <a className="button" href={consoleAddress} target="_blank" rel="noreferrer">
      Open the console
    </a>
  </aside>
);
