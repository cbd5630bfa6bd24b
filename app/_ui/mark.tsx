/** The logo: two linked rings in the current text color. */
export function Mark() {
  return (
    <svg aria-hidden="true" width="30" height="18" viewBox="0 0 30 18" fill="none" stroke="currentColor">
      <circle cx="9" cy="9" r="7" strokeWidth="2.5" />
      <circle cx="21" cy="9" r="7" strokeWidth="2.5" />
    </svg>
  );
}
