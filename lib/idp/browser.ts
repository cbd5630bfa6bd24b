/** The only module through which pages use the provider's browser SDK. */
export { UserButton, useAuth, useUser } from '@clerk/nextjs';
