import * as z from 'zod/mini';
import { variables, verdictKey } from './base/env';
import { mainProvider } from './main-provider';

/** Schema of all variables, so that one error lists all problems. Without variables of a provider, a key must be set for verdicts. */
export const allVariables = mainProvider.variables
  ? z.intersection(mainProvider.variables, variables)
  : z.extend(variables, { VERDICT_SIGNING_KEY: verdictKey });
