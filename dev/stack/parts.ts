import path from 'node:path';
import { deployMigrations } from '../../prisma/deploy';
import { prefetchClerkJs } from '../idp/clerk-js';
import { startIdentityProvider } from '../idp/server';
import { memoryEngine } from '../kv/memory';
import { startKvServer } from '../kv/server';
import { startPostgres } from '../postgres/server';
import { messageOf } from '../system/errors';
import { localKeys } from './keys';
import { connectToRedis, hostOf, missingMigrations, requireStore } from './own-parts';
import type { Settings } from './settings';
import type { StackDetails } from './stack-file';

/** A part that was started, or is the user's own. */
export interface Part {
  /** What to tell about it. */
  readonly line: string;
  readonly details: Pick<StackDetails, 'databaseUrl' | 'kv' | 'identityProvider'>;
  /** What the service needs in its environment to use it; empty for a part of the user's own. */
  readonly environment: Readonly<Record<string, string>>;
  /** What has to be done before the service can use it. */
  readonly warning?: string;
  stop(): Promise<void>;
}

const databaseName = 'identity_link';
/** The same at every start if it is free, so that a page that was left open finds the stack again. */
const consolePort = 3900;

/**
 * Starts a PostgreSQL and applies the migrations, unless DATABASE_URL names one; that one is left as it is. Rejects
 * within seconds when it cannot be used.
 */
export async function startDatabase(settings: Settings, signal: AbortSignal): Promise<Part> {
  const { DATABASE_URL } = settings;
  if (DATABASE_URL !== undefined) {
    const missing = await missingMigrations(DATABASE_URL);
    return {
      ...own(`${hostOf(DATABASE_URL)} (yours, from DATABASE_URL)`),
      ...(missing.length === 0 ? {} : { warning: notMigrated(DATABASE_URL, missing) }),
    };
  }
  const folder = path.join(settings.LOCAL_FOLDER, 'postgres');
  const server = await startPostgres({ folder, durable: true, signal });
  try {
    await server.createDatabase(databaseName);
    const databaseUrl = server.url(databaseName);
    await deployMigrations(databaseUrl);
    return {
      line: hostOf(databaseUrl) + (server.adopted ? ' (taken over from a run that was killed)' : ''),
      details: { databaseUrl },
      environment: { DATABASE_URL: databaseUrl },
      stop: () => server.stop(),
    };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/**
 * Starts a KV server, in memory or over the Redis of REDIS_URL, unless KV_REST_API_URL names one. Rejects within seconds
 * when either cannot be used.
 */
export async function startKv(settings: Settings): Promise<Part> {
  const { KV_REST_API_URL, KV_REST_API_TOKEN, REDIS_URL } = settings;
  if (KV_REST_API_URL !== undefined) {
    await requireStore(KV_REST_API_URL, KV_REST_API_TOKEN);
    return own(`${hostOf(KV_REST_API_URL)} (yours, from KV_REST_API_URL)`);
  }
  const { kvToken } = localKeys(keyFile(settings), settings.IDP_KEY_STYLE);
  const engine = REDIS_URL === undefined ? memoryEngine() : await connectToRedis(REDIS_URL);
  const { url, token, stop } = await startKvServer({ token: kvToken, engine });
  return {
    line: `${url} (${REDIS_URL === undefined ? 'in memory' : `over the Redis at ${hostOf(REDIS_URL)}`})`,
    details: { kv: { url, token } },
    environment: { KV_REST_API_URL: url, KV_REST_API_TOKEN: token },
    stop,
  };
}

/** Starts the identity provider's stand-in, which delivers its events to `app`, unless the IDP_* variables are set. */
export async function startStandIn(settings: Settings, app: string): Promise<Part> {
  if (settings.IDP_SECRET_KEY !== undefined) return own('yours, from IDP_SECRET_KEY and IDP_PUBLISHABLE_KEY');
  const { publishableKey, secretKey, webhookSecret } = localKeys(keyFile(settings), settings.IDP_KEY_STYLE);
  const provider = await startIdentityProvider({
    publishableKey,
    secretKey,
    webhook: { url: `${app}/webhooks/idp/v1/user-created`, secret: webhookSecret },
    retryScale: settings.IDP_RETRY_SCALE,
    handshake: { format: settings.IDP_HANDSHAKE_FORMAT, azp: settings.IDP_HANDSHAKE_AZP === 'on' },
    dataFile: path.join(settings.LOCAL_FOLDER, 'idp.json'),
    console: { preferredPort: consolePort },
  });
  // Once, in the background: no page waits for the registry later, and the stack runs offline from then on.
  prefetchClerkJs().catch((error: unknown) => console.warn(messageOf(error)));
  return {
    line: `${provider.url} (stand-in)`,
    details: {
      identityProvider: { url: provider.url, secretKey, consoleUrl: provider.consoleUrl },
    },
    environment: {
      IDP_SECRET_KEY: secretKey,
      IDP_PUBLISHABLE_KEY: publishableKey,
      IDP_WEBHOOK_SIGNING_SECRET: webhookSecret,
      IDP_JWT_KEY: provider.publicKeyPem,
      CLERK_API_URL: provider.url,
      CLERK_FAPI_URL: provider.url,
      ...(provider.consoleUrl === undefined ? {} : { IDP_CONSOLE_URL: provider.consoleUrl }),
    },
    stop: () => provider.stop(),
  };
}

function own(line: string): Part {
  return { line, details: {}, environment: {}, stop: async () => {} };
}

function keyFile({ LOCAL_FOLDER }: Settings): string {
  return path.join(LOCAL_FOLDER, 'keys.json');
}

function notMigrated(databaseUrl: string, missing: readonly string[]): string {
  return (
    `The database at ${hostOf(databaseUrl)} is not migrated: it lacks ${missing.join(', ')}. ` +
    'Requests fail until you run: npm run db:deploy'
  );
}
