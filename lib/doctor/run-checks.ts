import type { CheckResult } from '../base/check';
import { mainProvider } from '../main-provider';
import { checkCache } from './cache';
import { checkDatabase } from './database';
import { checkDeployedService } from './deployed';
import { checkVariables } from './variables';

/**
 * Checks the variables, the services that they configure and, if `origin` is set, the deployed service. `handlesEvents` is true
 * if events/ has handlers. Writes one key to the cache and deletes it, and makes no other change.
 */
export async function runChecks(origin: string | undefined, handlesEvents: boolean): Promise<CheckResult[]> {
  const results = await Promise.all([
    mainProvider.check?.() ?? [],
    checkDatabase(handlesEvents),
    checkCache(),
    origin === undefined ? [] : checkDeployedService(origin),
  ]);
  return [...checkVariables(), ...results.flat()];
}
