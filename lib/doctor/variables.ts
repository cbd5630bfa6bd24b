import type { CheckResult } from '../base/check';
import { parseEnvironmentSubset } from '../base/env';
import { InvalidEnvironmentError } from '../base/errors';
import { mainProvider } from '../main-provider';
import { allVariables } from '../variables';

/** Optional variables, with the effect and the remedy if they are not set. A test instance needs none. */
const RECOMMENDED = [
  [
    'IDP_AUTHORIZED_PARTIES',
    'the service accepts sessions of every subdomain of your domain',
    'Set it to the origins of your frontends',
  ],
  [
    'REGISTER_OWN_ID_ONLY',
    'a caller can register any id and get its internal id',
    'Set it to 1, unless a client registers other users',
  ],
] as const;

/** Returns a result for each problem or warning of the variables, or a single `ok`. The results contain no values. */
export function checkVariables(): CheckResult[] {
  const name = 'variables';
  try {
    const environment = parseEnvironmentSubset(allVariables);
    // Without Clerk, no session is for subdomains.
    const isNeeded = (variable: string) => mainProvider.isLive?.() ?? variable === 'REGISTER_OWN_ID_ONLY';
    const warnings = RECOMMENDED.filter(
      ([variable]) => environment[variable] === undefined && isNeeded(variable),
    ).map(([variable, effect, remedy]): CheckResult => {
      return { name, status: 'warning', message: `${variable} is not set: ${effect}`, remedy };
    });
    if (warnings.length > 0) return warnings;
    return [{ name, status: 'ok', message: 'all required variables are set and valid' }];
  } catch (error) {
    if (!(error instanceof InvalidEnvironmentError)) throw error;
    const remedy = 'Set it as .env.example describes it';
    return error.problems.map((message) => ({ name, status: 'failure', message, remedy }));
  }
}
