/** The only module through which the server uses the provider's SDK. The SDK reads its keys when it is loaded. */
import './sdk-environment';
import './backend-api-timeout';

export { auth, clerkMiddleware } from '@clerk/nextjs/server';
