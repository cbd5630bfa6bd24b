'use client';

/** Reloads the page, because scripts that failed to load are not requested again otherwise. */
export function ReloadButton() {
  return (
    <button className="button" type="button" onClick={() => window.location.reload()}>
      Try again
    </button>
  );
}
