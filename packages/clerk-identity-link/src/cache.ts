/** The service caches internal ids. In an application, the lookup is one statement. */
export type CacheResult =
  | { readonly outcome: 'hit'; readonly id: string }
  | { readonly outcome: 'miss' | 'error'; readonly entry?: 'block' | 'invalid' | undefined };

export const readCachedId = async (_kind: string, _clerkId: string): Promise<CacheResult> => ({
  outcome: 'error',
});
export const cacheId = async (..._entry: unknown[]): Promise<void> => undefined;
