import { text } from './text';

/** The identity provider's id of a user: up to 255 characters, taken as it stands; no trimming, and case matters. */
export const IdentityProviderUserId = text('identityProviderUserId', 255);
