'use client';

import { useEffect, useState } from 'react';
import styles from './account.module.css';

const SHOWN_MS = 2_500;
const labels = { idle: 'Copy', copied: 'Copied', failed: 'Not copied' } as const;

/** Copies a value and says so, to the eye and to a screen reader; says too if the browser refuses. */
export function CopyButton({ value, name }: { value: string; name: string }) {
  const [result, setResult] = useState<keyof typeof labels>('idle');

  useEffect(() => {
    if (result === 'idle') return;
    const timer = setTimeout(() => setResult('idle'), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [result]);

  const copy = async () => {
    try {
      // Over plain HTTP from another machine there is no clipboard at all.
      await navigator.clipboard.writeText(value);
      setResult('copied');
    } catch {
      setResult('failed');
    }
  };

  return (
    <>
      <button className={`button ${styles['copy']}`} type="button" onClick={() => void copy()}>
        {labels[result]}
        <span className="visually-hidden"> {name}</span>
      </button>
      <span className="visually-hidden" role="status">
        {result === 'idle' ? '' : `${labels[result]}: ${name}`}
      </span>
    </>
  );
}
