/** The one door to the provider's SDK on the server: its keys are set before it is loaded, for then it reads them. */
import './sdk-environment';
import './backend-api-timeout';

export { auth, clerkMiddleware } from '@clerk/nextjs/server';
