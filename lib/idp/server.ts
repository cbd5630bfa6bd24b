/**
 * The only module through which server code calls functions of the provider's SDK. (lib/idp/authentication-adapter.ts also
 * calls the SDK, but is disabled.) The two imports come before the SDK, because the SDK reads its keys and binds `fetch` when
 * it is loaded.
 */
import './sdk-environment';
import './backend-api-timeout';

export { auth, clerkMiddleware } from '@clerk/nextjs/server';
