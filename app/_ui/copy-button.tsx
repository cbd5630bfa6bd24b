'use client';

import { useEffect, useState } from 'react';
import styles from './ui.module.css';

const RESULT_SHOWN_MS = 2_500;
const labels = { idle: 'Copy', copied: 'Copied', failed: 'Not copied' } as const;

/** Copies a value to the clipboard and announces the result. The CSS hides the button in browsers that do not run scripts. */
export function CopyButton({ value, name }: { value: string; name: string }) {
  const [result, setResult] = useState<keyof typeof labels>('idle');

  useEffect(() => {
    if (result === 'idle') return;
    const timer = setTimeout(() => setResult('idle'), RESULT_SHOWN_MS);
    return () => clearTimeout(timer);
  }, [result]);

  const copy = async () => {
    try {
      // `navigator.clipboard` is undefined on plain HTTP, except on localhost.
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
