import path from 'node:path';
import { prefetchClerkJs, startEmulator } from 'clerk-emulator';
import getPort from 'get-port';
import { errorCode, messageOf } from '#lib/base/errors';
import { deployMigrations, pendingMigrations } from '#lib/storage/migrations';
import { startKvServer } from '../kv';
import { startPostgres } from '../postgres/server';
import { localKeys } from './keys';
import { clerkJsFolder, type Settings } from './settings';

/** A dependency of the service. The local stack starts it, or the user provides it. */
export interface Dependency {
  /** Description to print at startup. */
  readonly line: string;
  /** Environment variables that the stack sets for the service. Empty for a dependency that the user provides. */
  readonly environment: Readonly<Record<string, string>>;
  /** Step that the user must take before the service can use the dependency. */
  readonly warning?: string;
  stop(): Promise<void>;
}

const databaseName = 'identity_link';
/** Preferred port of the emulator's console. A fixed port lets an open browser tab reconnect after a restart. */
const consolePort = 3900;

/** Starts PostgreSQL and migrates it. Only checks the database in DATABASE_URL, and rejects if it is unusable. */
export async function startDatabase(settings: Settings): Promise<Dependency> {
  const { DATABASE_URL } = settings;
  if (DATABASE_URL !== undefined) {
    const missing = await pendingMigrations(DATABASE_URL).catch((error: unknown) => {
      throw unusableError('DATABASE_URL', DATABASE_URL, messageOf(error));
    });
    const host = getHost(DATABASE_URL);
    const line = `${host} (yours, from DATABASE_URL)`;
    // The role may lack the right to read which migrations are applied.
    if (!missing?.length) return userProvided(line);
    const warning = `The database at ${host} is not migrated. Missing: ${missing.join(', ')}. Requests fail until you run: npm run db:deploy`;
    return { ...userProvided(line), warning };
  }
  const folder = path.join(settings.LOCAL_FOLDER, 'postgres');
  const server = await startPostgres({ folder, durable: true });
  await server.createDatabase(databaseName);
  const databaseUrl = server.url(databaseName);
  await deployMigrations(databaseUrl);
  return { line: getHost(databaseUrl), environment: { DATABASE_URL: databaseUrl }, stop: server.stop };
}

/** Starts a key-value (KV) server in memory. Only checks the store at KV_REST_API_URL, and rejects if it is unusable. */
export async function startKv(settings: Settings): Promise<Dependency> {
  const { KV_REST_API_URL, KV_REST_API_TOKEN } = settings;
  if (KV_REST_API_URL !== undefined) {
    await requireStore(KV_REST_API_URL, KV_REST_API_TOKEN);
    return userProvided(`${getHost(KV_REST_API_URL)} (yours, from KV_REST_API_URL)`);
  }
  const { url, token, stop } = await startKvServer({ token: readKeys(settings).kvToken });
  return {
    line: `${url} (in memory)`,
    environment: { KV_REST_API_URL: url, KV_REST_API_TOKEN: token },
    stop,
  };
}

/** Starts the identity provider emulator unless IDP_SECRET_KEY is set. The emulator sends webhooks to `app`. */
export async function startIdpEmulator(settings: Settings, app: string): Promise<Dependency> {
  if (settings.IDP_SECRET_KEY !== undefined)
    return userProvided('yours, from IDP_SECRET_KEY and IDP_PUBLISHABLE_KEY');
  const { publishableKey, secretKey, webhookSecret, providerPort: port } = readKeys(settings);
  if ((await getPort({ port })) !== port)
    throw new Error(`Port ${port} is in use. Free it, or change providerPort in ${keysFile(settings)}.`);
  const provider = await startEmulator({
    port,
    publishableKey,
    secretKey,
    webhook: { url: `${app}/webhooks/idp/v1/user-created`, secret: webhookSecret },
    // A retry after 5 s comes after 5 ms, and one after 10 h after 36 s.
    retryScale: 0.001,
    dataFile: path.join(settings.LOCAL_FOLDER, 'idp.json'),
    console: { preferredPort: consolePort },
    clerkJsFolder,
  });
  // Downloads the browser SDK once, in the background. Pages then do not wait for the npm registry, and the stack works
  // offline.
  prefetchClerkJs(clerkJsFolder).catch((error: unknown) => console.warn(messageOf(error)));
  return {
    line: `${provider.url} (emulator)`,
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

const userProvided = (line: string): Dependency => ({ line, environment: {}, stop: async () => {} });

const keysFile = ({ LOCAL_FOLDER }: Settings) => path.join(LOCAL_FOLDER, 'keys.json');
const readKeys = (settings: Settings) => localKeys(keysFile(settings));

/** Returns the host and port of a URL, without the credentials. */
const getHost = (url: string): string => new URL(url).host;

/** Rejects if the KV store that the user provides does not respond to a GET command with 200 within 3 s. */
export async function requireStore(url: string, token = ''): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(['GET', 'identity-link:is-it-there']),
    signal: AbortSignal.timeout(3_000),
  }).catch((error: unknown) => {
    // Reports only the error code, because the message may contain the URL or the token.
    const cause = error instanceof Error ? error.cause : undefined;
    throw unusableError('KV_REST_API_URL', url, cause === undefined ? cause : errorCode(cause));
  });
  await response.body?.cancel();
  const { status } = response;
  if (status !== 200) throw unusableError('KV_REST_API_URL', url, `status ${status}`);
}

function unusableError(name: string, url: string, reason = 'no response'): Error {
  return new Error(
    `The local stack cannot start: cannot use ${getHost(url)} from ${name} (${reason}). ` +
      `Correct ${name}, or leave it empty to use the embedded service.`,
  );
}
