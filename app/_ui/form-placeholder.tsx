'use client';

import { useEffect, useState } from 'react';
import { ReloadButton } from './reload-button';
import styles from './sign-in-frame.module.css';

const PATIENCE_MS = 6_000;

/** Stands where a form of the provider will; admits it when the form takes long. */
export function FormPlaceholder({ title }: { title: string }) {
  const [late, setLate] = useState(false);

  useEffect(() => {
    const timer = setTimeout(() => setLate(true), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, []);

  return (
    <div className={`card ${styles['placeholder']}`}>
      <h1>{title}</h1>
      <p role="status">
        {late
          ? 'Still loading: the identity provider, which serves the form, is slow today.'
          : 'Loading the form…'}
      </p>
      {late ? <ReloadButton /> : null}
    </div>
  );
}
