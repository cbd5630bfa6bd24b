import { TransientError } from '../concurrency/retry';
import { deleteCachedUserIds } from '../linking/id-cache';

/** Deletes the cache entries of users. Rejects with a TransientError if the store does not confirm the deletion. */
export const uncache = (identityProviderUserIds: readonly string[]): Promise<void> =>
  deleteCachedUserIds(identityProviderUserIds).catch(() => {
    throw new TransientError('The cache does not respond');
  });
