import { checkCache } from './cache';
import type { NamedCheck } from './check';
import { checkDatabase } from './database';
import { checkDeployedService } from './deployed';
import { checkProvider } from './provider';
import { checkVariables } from './variables';

export interface CheckOptions {
  /** Origin of a deployed service. If it is set, that service is checked too. */
  readonly origin?: string | undefined;
  /** True on the local stack (dev/). Its database has only one role, and its development server compiles routes on demand. */
  readonly isLocal: boolean;
  /** True if the folder events/ has handlers of webhook events. These handlers need further database privileges. */
  readonly handlesEvents: boolean;
}

/**
 * Checks the environment variables of this process, the services that they configure and, if `origin` is set, a deployed
 * service. Writes one key to the cache and deletes it. Makes no other change.
 */
export async function runChecks({ origin, isLocal, handlesEvents }: CheckOptions): Promise<NamedCheck[]> {
  // The cache is checked alone. Concurrent checks would slow down the cache calls, which have a timeout of only 500 ms.
  const cache = await checkCache();
  const [provider, database, deployed] = await Promise.all([
    checkProvider(),
    checkDatabase({ isLocal, handlesEvents }),
    origin === undefined ? [] : checkDeployedService(origin, isLocal),
  ]);
  return [...checkVariables(process.env), ...provider, ...database, ...cache, ...deployed];
}
