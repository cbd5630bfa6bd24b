/** The only module through which pages use the provider's SDK in the browser. */
export { UserButton, useAuth, useUser } from '@clerk/nextjs';
