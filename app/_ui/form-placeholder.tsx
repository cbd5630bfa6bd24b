'use client';

import { useEffect, useState } from 'react';
import { ReloadButton } from './reload-button';
import styles from './sign-in-frame.module.css';

const SLOW_AFTER_MS = 6_000;

/**
 * Reserves space while the identity provider's form loads. After six seconds, says that loading is slow and offers a reload.
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
      {late ? <ReloadButton /> : null}
    </div>
  );
}
