import { attachDatabasePool } from '@vercel/functions';
import { compare } from 'bcryptjs';
import { betterAuth } from 'better-auth';
import { verifyPassword } from 'better-auth/crypto';
import { bearer } from 'better-auth/plugins/bearer';
import { organization } from 'better-auth/plugins/organization';
import { Pool } from 'pg';
import { databaseOptions } from '#lib/base/database-url';
import { environment } from '#lib/base/env';
import { describeError } from '#lib/base/errors';
import { log } from '#lib/base/log';
import { processState } from '#lib/base/process-state';
import { onShutdown } from '#lib/base/shutdown';

/** Hashes that `commands/move-to-better-auth.ts` has taken from Clerk. */
const BCRYPT = /^\$2[aby]\$/;

/**
 * npm install --save-prod better-auth@1.7.25 bcryptjs@3.0.3
 *
 * The tables have names of their own, because `User` and `organization` mean something else in this service.
 */
function create() {
  const { DATABASE_URL, PUBLIC_ORIGIN: baseURL } = environment();
  const secret = process.env['BETTER_AUTH_SECRET'];
  if (!baseURL || !secret) throw new Error('PUBLIC_ORIGIN or BETTER_AUTH_SECRET is missing');
  const limits = { connectionTimeoutMillis: 2_000, query_timeout: 3_000, idleTimeoutMillis: 5_000, max: 5 };
  const pool = new Pool({ ...databaseOptions(DATABASE_URL), ...limits });
  pool.on('error', (error) => log.warn({ error: describeError(error) }, 'idle database connection lost'));
  attachDatabasePool(pool);
  onShutdown(() => pool.end());
  return betterAuth({
    baseURL,
    secret,
    database: pool,
    telemetry: { enabled: false },
    // The texts of the library can contain values of a request.
    logger: { level: 'error', log: (level) => log.warn({ level }, 'Better Auth reports a problem') },
    emailAndPassword: {
      enabled: true,
      password: {
        verify: ({ hash, password }) =>
          BCRYPT.test(hash) ? compare(password, hash) : verifyPassword({ hash, password }),
      },
    },
    user: { modelName: 'auth_users' },
    session: { modelName: 'auth_sessions' },
    account: { modelName: 'auth_accounts' },
    verification: { modelName: 'auth_verifications' },
    databaseHooks: {
      user: {
        create: {
          // Links a new user at once, as the webhook of Clerk does. The first request links the user if this fails.
          after: async ({ id }) => {
            const { register } = await import('#lib/register');
            await register('user', id).catch(() => undefined);
          },
        },
      },
    },
    plugins: [
      organization({
        schema: {
          organization: { modelName: 'auth_organizations' },
          member: { modelName: 'auth_members' },
          invitation: { modelName: 'auth_invitations' },
        },
      }),
      // Without a signature, a token of the table of sessions would be a bearer.
      bearer({ requireSignature: true }),
    ],
  });
}

const state = processState('better-auth', (): { auth?: ReturnType<typeof create> } => ({}));

/** Returns Better Auth of this process. The first call creates it, because a build has no variables. */
export function auth(): ReturnType<typeof create> {
  state.auth ??= create();
  return state.auth;
}
