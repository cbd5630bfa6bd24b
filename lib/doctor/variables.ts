import type { CheckResult } from '../base/check';
import { parseEnvironment } from '../base/env';
import { InvalidEnvironmentError } from '../base/errors';

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
};

/** Returns a result for each problem or warning of the variables, or a single `ok`. The results contain no values. */
export function checkVariables(source: NodeJS.ProcessEnv): CheckResult[] {
  const result = (status: 'warning' | 'failure', message: string, remedy: string): CheckResult => ({
    name: 'variables',
    status,
    message,
    remedy,
  });
  try {
    const { IDP_SECRET_KEY, IDP_JWT_KEY, IDP_AUTHORIZED_PARTIES, REGISTER_OWN_ID_ONLY } =
      parseEnvironment(source);
    const isLive = IDP_SECRET_KEY.startsWith('sk_live_');
    const warnings: CheckResult[] = [];
    if (IDP_JWT_KEY === undefined) {
      const message = 'IDP_JWT_KEY is not set: the service fetches the keys from the provider';
      warnings.push(result('warning', message, 'Set it to the JWT public key'));
    }
    if (isLive && IDP_AUTHORIZED_PARTIES === undefined) {
      const message =
        'IDP_AUTHORIZED_PARTIES is not set: the service accepts sessions of every subdomain of your domain';
      warnings.push(result('warning', message, 'Set it to the origins of your frontends'));
    }
    if (isLive && REGISTER_OWN_ID_ONLY === undefined) {
      const message = 'REGISTER_OWN_ID_ONLY is not set: a caller can register any id and get its internal id';
      warnings.push(result('warning', message, 'Set it to 1, unless a client registers other users'));
    }
    if (warnings.length > 0) return warnings;
    return [{ name: 'variables', status: 'ok', message: 'all required variables are set and valid' }];
  } catch (error) {
    if (!(error instanceof InvalidEnvironmentError)) throw error;
    return error.problems.map((problem) =>
      result('failure', problem, REMEDIES[problem.split(' ')[0] ?? ''] ?? 'Correct it, or unset it'),
    );
  }
}
