/** The one door to what pages use of the provider's SDK in the browser. */
export { UserButton, useAuth } from '@clerk/nextjs';
