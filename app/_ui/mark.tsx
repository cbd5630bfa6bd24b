/** Two rings that hold each other: the sign of the site, in the colour of the text around it. */
export function Mark() {
  return (
    <svg aria-hidden="true" width="30" height="18" viewBox="0 0 30 18" fill="none" stroke="currentColor">
      <circle cx="9" cy="9" r="7" strokeWidth="2.5" />
      <circle cx="21" cy="9" r="7" strokeWidth="2.5" />
    </svg>
  );
}
