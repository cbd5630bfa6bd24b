'use client';

/** Reloads the page. The browser does not request failed scripts again without a reload. */
export function ReloadButton() {
  return (
    <button className="button" type="button" onClick={() => window.location.reload()}>
      Try again
    </button>
  );
}
