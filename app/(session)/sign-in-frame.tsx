import { mailsOnConsole } from '#lib/clerk/browser-settings';
import type { SignIn, SignUp } from '#lib/clerk/components';
import { fillingAppearance } from './clerk-appearance';
import { FormFallback, FormPlaceholder } from './form-placeholder';
import { Hydrated } from './hydrated';
import { MailBanner } from './mail-banner';
import styles from './sign-in-frame.module.css';

/** Shows a form of the identity provider. Reserves its space until it is complete. */
export function SignInFrame({
  title,
  size,
  Form,
}: {
  title: string;
  size: 'sign-in' | 'sign-up';
  Form: typeof SignIn | typeof SignUp;
}) {
  const consoleAddress = mailsOnConsole();
  return (
    <div className={`shell ${styles['page']}`}>
      {consoleAddress ? <MailBanner consoleAddress={consoleAddress} /> : null}
      <div className={`${styles['room']} ${styles[size]}`}>
        <Hydrated fallback={<FormPlaceholder title={title} />}>
          <Form appearance={fillingAppearance} fallback={<FormFallback title={title} />} />
        </Hydrated>
      </div>
    </div>
  );
}
