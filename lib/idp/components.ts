/** The one door to the provider's components for pages that the server renders: its keys are set before it is loaded. */
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
