/** The only module through which pages use the provider's SDK in the browser. */
export { UserButton, useAuth } from '@clerk/nextjs';
