/**
 * The only module that imports server functions of the provider's SDK, except lib/idp/authentication-adapter.ts, which the
 * service does not use. The two imports come before the SDK, because the SDK reads its keys and binds `fetch` when it is loaded.
 */
import './sdk-environment';
import './backend-api-timeout';

export { auth, clerkMiddleware } from '@clerk/nextjs/server';
