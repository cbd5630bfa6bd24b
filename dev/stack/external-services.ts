import { setTimeout as pause } from 'node:timers/promises';
import { pendingMigrations } from '../../lib/migrations/deploy';
import { redisEngine } from '../kv/redis';
import { CommandError, type KvEngine } from '../kv/server';
import { errorCode, messageOf } from '../system/errors';

/** Time limit of each check. */
const timeoutSeconds = 3;

/**
 * Returns the migrations that have not been applied to the database in DATABASE_URL, which the user provides. Returns an empty
 * list if the database role cannot read the table of migrations. Rejects within 3 s if the database is unusable.
 */
export async function missingMigrations(databaseUrl: string): Promise<readonly string[]> {
  try {
    return (await withTimeout(pendingMigrations(databaseUrl))) ?? [];
  } catch (error) {
    // A failed connection to a host name with several addresses throws an error without a message.
    throw unusableError(['DATABASE_URL'], databaseUrl, messageOf(error) || errorCode(error));
  }
}

/** Resolves if the KV store that the user provides responds to a GET command with 200. Otherwise, rejects within 3 s. */
export async function requireStore(url: string, token = ''): Promise<void> {
  const names = ['KV_REST_API_URL', 'KV_REST_API_TOKEN'];
  const status = await sendGet(url, token).catch((error: unknown) => {
    // Reports only the error code, because the message may contain the URL or the token.
    const cause = error instanceof Error ? error.cause : undefined;
    throw unusableError(names, url, errorCode(cause) ?? noResponse);
  });
  if (status === 401 || status === 403) {
    throw unusableError(names, url, `it rejects the token with ${status}`);
  }
  if (status !== 200) throw unusableError(names, url, `it responds to a GET command with ${status}`);
}

/** Returns a KvEngine that uses the Redis server in REDIS_URL. Rejects within 3 s if Redis does not respond to PING. */
export async function connectToRedis(url: string): Promise<KvEngine> {
  const engine = redisEngine(url);
  try {
    await withTimeout(engine.call('PING'));
    return engine;
  } catch (error) {
    await engine.close();
    throw unusableError(['REDIS_URL'], url, error instanceof CommandError ? error.message : noResponse);
  }
}

/** Returns the host and port of a URL, without the credentials. */
export function getHost(url: string): string {
  return new URL(url).host;
}

const noResponse = 'no response';

async function sendGet(url: string, token: string): Promise<number> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(['GET', 'identity-link:is-it-there']),
    signal: AbortSignal.timeout(timeoutSeconds * 1000),
  });
  await response.body?.cancel();
  return response.status;
}

function withTimeout<T>(promise: Promise<T>): Promise<T> {
  const timeout = pause(timeoutSeconds * 1000).then(() => {
    throw new Error(`no response within ${timeoutSeconds} s`);
  });
  return Promise.race([promise, timeout]);
}

function unusableError(names: readonly string[], url: string, reason: string | undefined): Error {
  return new Error(
    `The local stack cannot start: cannot use ${getHost(url)} from ${names[0]} (${reason ?? noResponse}). ` +
      `Correct ${names.join(' and ')}, or leave ${names.length > 1 ? 'them' : 'it'} empty to use the embedded service.`,
  );
}
