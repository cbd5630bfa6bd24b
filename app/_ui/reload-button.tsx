'use client';

/** Reloads the page, because only a reload makes the browser request a failed script again. */
export function ReloadButton() {
  return (
    <button className="button primary" type="button" onClick={() => window.location.reload()}>
      Try again
    </button>
  );
}
