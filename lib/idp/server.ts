/**
 * Exports the server functions of the provider's SDK. Other modules of the service must not import them from the SDK directly.
 * The import below sets the SDK's keys. It comes first, because the SDK reads its keys when it is loaded.
 */
import './sdk-environment';

export { auth, clerkMiddleware } from '@clerk/nextjs/server';
