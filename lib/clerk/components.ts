/** The only module through which server-rendered pages use the provider's components. The import below sets the SDK's keys. */
import './sdk-environment';

export { ClerkProvider, SignIn, SignUp, UserButton } from '@clerk/nextjs';
