import * as z from 'zod/mini';
import { InvalidEnvironmentError, parseEnvironment, parseEnvironmentSubset, variables } from '../env';
import { type Examined, failure, ok, warning } from './check';

const DASHBOARD = "Copy it from the API keys page of the identity provider's dashboard";

const REMEDIES: Readonly<Record<string, string>> = {
  IDP_SECRET_KEY: `${DASHBOARD}: the secret key, of the same instance as the publishable key`,
  IDP_PUBLISHABLE_KEY: `${DASHBOARD}: the publishable key`,
  IDP_WEBHOOK_SIGNING_SECRET: "Copy the signing secret from the webhook endpoint's page, with its whsec_",
  IDP_JWT_KEY: `${DASHBOARD}: the JWT public key, in PEM, with its first and last line; or leave it unset`,
  IDP_AUTHORIZED_PARTIES:
    'List the origins of your frontends, such as https://app.example.com, without a path',
  DATABASE_URL: 'Take the connection string of your PostgreSQL; a pooler is fine',
  KV_REST_API_URL: "Take the https:// address of the store's REST API, not its redis:// one",
  KV_REST_API_TOKEN: "Take the token of the store's REST API that may write",
  USER_ID_CACHE_TTL_SECONDS: 'Set a whole number of seconds, or leave it unset',
};
const LOCAL_ONLY = 'Leave it unset: only the local stack sets it';

/**
 * Every variable by the service's own schema: one row for each problem, by name and never by value; one row if there is
 * none.
 */
export function examineVariables(source: NodeJS.ProcessEnv): Examined[] {
  try {
    const { IDP_SECRET_KEY, IDP_JWT_KEY, IDP_AUTHORIZED_PARTIES } = parseEnvironment(source);
    const unwise = [
      ...(IDP_JWT_KEY === undefined
        ? [
            warning(
              'IDP_JWT_KEY is not set: keys are fetched from the provider',
              'Set it to the JWT public key',
            ),
          ]
        : []),
      ...(IDP_SECRET_KEY.startsWith('sk_live_') && IDP_AUTHORIZED_PARTIES === undefined
        ? [
            warning(
              'IDP_AUTHORIZED_PARTIES is not set: sessions of every subdomain are accepted',
              'Set it to the origins of your frontends',
            ),
          ]
        : []),
    ];
    const rows = unwise.length === 0 ? [ok('all there, each in its shape')] : unwise;
    return rows.map((row) => ({ name: 'variables', ...row }));
  } catch (error) {
    if (!(error instanceof InvalidEnvironmentError)) throw error;
    return error.problems.map((problem) => ({
      name: 'variables',
      ...failure(problem, REMEDIES[problem.split(' ')[0] ?? ''] ?? LOCAL_ONLY),
    }));
  }
}

/** Some of the variables; undefined where one of these is wrong, which examineVariables tells of. */
export function valid<T>(part: z.ZodMiniType<T>): T | undefined {
  try {
    return parseEnvironmentSubset(part);
  } catch (error) {
    if (error instanceof InvalidEnvironmentError) return undefined;
    throw error;
  }
}

/** The parts of the environment that one check each needs. */
export const PARTS = {
  secretKey: z.pick(variables, { IDP_SECRET_KEY: true, CLERK_API_URL: true }),
  publishableKey: z.pick(variables, { IDP_PUBLISHABLE_KEY: true, CLERK_FAPI_URL: true }),
  jwtKey: z.pick(variables, { IDP_JWT_KEY: true }),
  database: z.pick(variables, { DATABASE_URL: true }),
  cache: z.pick(variables, { KV_REST_API_URL: true, KV_REST_API_TOKEN: true }),
  signingSecrets: z.pick(variables, { IDP_WEBHOOK_SIGNING_SECRET: true }),
};
