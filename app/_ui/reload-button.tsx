'use client';

/** Loads the document afresh, for scripts that did not come the first time. */
export function ReloadButton() {
  return (
    <button className="button" type="button" onClick={() => window.location.reload()}>
      Try again
    </button>
  );
}
