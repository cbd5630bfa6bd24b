/** The only module through which server-rendered pages use the provider's components. It sets the SDK's keys first. */
import './sdk-environment';

export {
  ClerkFailed,
  ClerkLoaded,
  ClerkLoading,
  ClerkProvider,
  Show,
  SignIn,
  SignUp,
} from '@clerk/nextjs';
