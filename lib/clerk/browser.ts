/** The only module through which pages use the provider's SDK in the browser. */
export { UserButton, useSession, useUser } from '@clerk/nextjs';
