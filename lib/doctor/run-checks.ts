import { checkCache } from './cache';
import type { CheckResult } from './check';
import { checkDatabase } from './database';
import { checkDeployedService } from './deployed';
import { checkProvider } from './provider';
import { checkVariables } from './variables';

/**
 * Checks the environment variables of this process, the services that they configure and, if `origin` is set, the service that
 * is deployed there. `handlesEvents` is true if the folder events/ has handlers. Writes one key to the cache and deletes it.
 * Makes no other change.
 */
export async function runChecks(origin: string | undefined, handlesEvents: boolean): Promise<CheckResult[]> {
  const results = await Promise.all([
    checkProvider(),
    checkDatabase(handlesEvents),
    checkCache(),
    origin === undefined ? [] : checkDeployedService(origin),
  ]);
  return [...checkVariables(process.env), ...results.flat()];
}
