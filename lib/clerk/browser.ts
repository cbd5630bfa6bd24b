/** The only module through which pages use the provider's SDK in the browser. */
export { useClerk, useSession, useUser } from '@clerk/nextjs';
