/**
 * Exports the server functions of the provider's SDK. Other modules of the service must not import them from the SDK directly.
 * The two imports below set the SDK's keys and replace `fetch`. They come first, because the SDK reads its keys and binds
 * `fetch` when it is loaded.
 */
import './sdk-environment';
import './backend-api-timeout';

export { auth, clerkMiddleware } from '@clerk/nextjs/server';
