'use client';

/** Reloads the page. Without a reload, the browser would not request scripts again that failed to load. */
export function ReloadButton() {
  return (
    <button className="button" type="button" onClick={() => window.location.reload()}>
      Try again
    </button>
  );
}
