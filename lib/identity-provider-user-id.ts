import * as z from 'zod/mini';

const MAX_LENGTH = 255;

/**
 * The identity provider's id of a user: non-empty, at most 255 characters, well-formed Unicode without NUL, which
 * PostgreSQL cannot store. It is taken as it stands: no trimming, and case matters.
 */
export const IdentityProviderUserId = z.string({ error: 'identityProviderUserId must be a string' }).check(
  z.minLength(1, 'identityProviderUserId must not be empty'),
  z.maxLength(MAX_LENGTH, `identityProviderUserId must have at most ${MAX_LENGTH} characters`),
  z.refine(
    (id) => id.isWellFormed() && !id.includes('\0'),
    'identityProviderUserId must be well-formed Unicode without NUL',
  ),
);
