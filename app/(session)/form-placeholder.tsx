'use client';

import { useEffect, useState } from 'react';
import { useClerk } from '#lib/clerk/browser';
import { ReloadButton } from '../_ui/reload-button';
import ui from '../_ui/ui.module.css';
import styles from './sign-in-frame.module.css';

const SLOW_AFTER_MS = 6_000;

/**
 * Reserves space until the identity provider's form is complete. After six seconds, says that loading is slow and offers a
 * reload.
 */
export function FormPlaceholder({ title }: { title: string }) {
  const [late, setLate] = useState(false);

  useEffect(() => {
    const timer = setTimeout(() => setLate(true), SLOW_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);

  return (
    <div className={`card ${styles['placeholder']}`}>
      <h1>{title}</h1>
      <p role="status">
        {late ? 'Still loading. The identity provider is slow to send the form.' : 'Loading the form…'}
      </p>
      <noscript>
        <p>The form needs JavaScript.</p>
      </noscript>
      {late ? <ReloadButton /> : null}
    </div>
  );
}

/** Shows the placeholder, and an error if the form cannot be loaded. */
export function FormFallback({ title }: { title: string }) {
  if (useClerk().status !== 'error') return <FormPlaceholder title={title} />;
  return (
    <div className={`card ${ui['notice']} ${ui['trouble']}`} role="alert">
      <h1>The form could not be loaded</h1>
      <p>The form comes from the identity provider, which did not respond. Check your connection.</p>
      <ReloadButton />
    </div>
  );
}
