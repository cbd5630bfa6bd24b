import * as z from 'zod/mini';
import { InvalidEnvironmentError, parseEnvironment, parseEnvironmentSubset, variables } from '../env';
import { failure, type NamedCheck, ok, warning } from './check';

const DASHBOARD = "Copy it from the API keys page of the identity provider's dashboard";

const REMEDIES: Readonly<Record<string, string>> = {
  IDP_SECRET_KEY: `${DASHBOARD}: the secret key of the same instance as the publishable key`,
  IDP_PUBLISHABLE_KEY: `${DASHBOARD}: the publishable key`,
  IDP_WEBHOOK_SIGNING_SECRET:
    "Copy the signing secret, including whsec_, from the webhook endpoint's page in the dashboard",
  IDP_JWT_KEY: `${DASHBOARD}: the JWT public key in PEM format, including its first and last line. Or unset IDP_JWT_KEY`,
  IDP_AUTHORIZED_PARTIES: 'List the origins of your frontends without a path: https://app.example.com',
  DATABASE_URL: 'Set it to the connection string of your PostgreSQL database. A pooler is fine',
  KV_REST_API_URL: "Set it to the https:// URL of the store's REST API, not to its redis:// URL",
  KV_REST_API_TOKEN: 'Set it to the REST API token of the store. The token must have write access',
  USER_ID_CACHE_TTL_SECONDS: 'Set a whole number of seconds, or unset it',
  FORGOTTEN_USERS_DAYS: 'Set a whole number of days, or unset it',
};
/** Remedy for a variable that has no entry in `REMEDIES`. */
const LOCAL_ONLY = 'Unset it: only the local stack uses it';

/**
 * Parses all variables with the schema of the service. Returns one result for each problem or warning, or a single `ok`. The
 * results contain names but not values.
 */
export function checkVariables(source: NodeJS.ProcessEnv): NamedCheck[] {
  try {
    const { IDP_SECRET_KEY, IDP_JWT_KEY, IDP_AUTHORIZED_PARTIES } = parseEnvironment(source);
    const warnings = [
      ...(IDP_JWT_KEY === undefined
        ? [
            warning(
              'IDP_JWT_KEY is not set: the service fetches the keys from the provider',
              'Set it to the JWT public key',
            ),
          ]
        : []),
      ...(IDP_SECRET_KEY.startsWith('sk_live_') && IDP_AUTHORIZED_PARTIES === undefined
        ? [
            warning(
              'IDP_AUTHORIZED_PARTIES is not set: the service accepts sessions of every subdomain of your domain',
              'Set it to the origins of your frontends',
            ),
          ]
        : []),
    ];
    const results = warnings.length === 0 ? [ok('all required variables are set and valid')] : warnings;
    return results.map((result) => ({ name: 'variables', ...result }));
  } catch (error) {
    if (!(error instanceof InvalidEnvironmentError)) throw error;
    return error.problems.map((problem) => ({
      name: 'variables',
      ...failure(problem, REMEDIES[problem.split(' ')[0] ?? ''] ?? LOCAL_ONLY),
    }));
  }
}

/** Parses a group of variables. Returns undefined if one is invalid, because checkVariables() already reports this error. */
export function tryParse<T>(group: z.ZodMiniType<T>): T | undefined {
  try {
    return parseEnvironmentSubset(group);
  } catch (error) {
    if (error instanceof InvalidEnvironmentError) return undefined;
    throw error;
  }
}

/** Schemas of the variables that each group of checks needs. */
export const ENV_GROUPS = {
  secretKey: z.pick(variables, { IDP_SECRET_KEY: true, CLERK_API_URL: true }),
  publishableKey: z.pick(variables, { IDP_PUBLISHABLE_KEY: true, CLERK_FAPI_URL: true }),
  jwtKey: z.pick(variables, { IDP_JWT_KEY: true }),
  database: z.pick(variables, { DATABASE_URL: true }),
  cache: z.pick(variables, { KV_REST_API_URL: true, KV_REST_API_TOKEN: true }),
  signingSecrets: z.pick(variables, { IDP_WEBHOOK_SIGNING_SECRET: true }),
};
