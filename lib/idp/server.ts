/**
 * The only module through which live server code calls the provider's SDK. The two imports come first, because the SDK reads
 * its keys and binds `fetch` when it is loaded.
 */
import './sdk-environment';
import './backend-api-timeout';

export { auth, clerkMiddleware } from '@clerk/nextjs/server';
