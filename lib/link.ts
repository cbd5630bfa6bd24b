import { isLostRace } from './base/sql-state';
import { createLink } from './core/link';
import { observer } from './http/request-log';
import { findLink, insertLink, isForgotten } from './ids/store';

let cache: Promise<typeof import('./ids/cache')> | undefined;

/** The link of this service. The clients of PostgreSQL and KV load at their first call, because a webhook needs only one. */
export const link = createLink({
  store: { find: findLink, insert: insertLink, isForgotten, isLostRace },
  cache: {
    async read(kind, providerId) {
      cache ??= import('./ids/cache');
      return (await cache).readCachedId(kind, providerId);
    },
  },
  observer,
});
