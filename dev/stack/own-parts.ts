import { setTimeout as pause } from 'node:timers/promises';
import { pendingMigrations } from '../../prisma/deploy';
import { redisEngine } from '../kv/redis';
import { CommandError, type KvEngine } from '../kv/server';
import { errorCode, messageOf } from '../system/errors';

const patienceSeconds = 3;

/**
 * The migrations that a database of the user's own lacks; none where its role may not read them. Rejects within 3 s when
 * the database cannot be used.
 */
export async function missingMigrations(databaseUrl: string): Promise<readonly string[]> {
  try {
    return (await inTime(pendingMigrations(databaseUrl))) ?? [];
  } catch (error) {
    // A name with several addresses fails with an error that has no message.
    throw unusable(['DATABASE_URL'], databaseUrl, messageOf(error) || errorCode(error));
  }
}

/** Resolves if a store of the user's own answers a read, as the service sends one. Rejects within 3 s if it does not. */
export async function requireStore(url: string, token = ''): Promise<void> {
  const names = ['KV_REST_API_URL', 'KV_REST_API_TOKEN'];
  const status = await ask(url, token).catch((error: unknown) => {
    // The message may quote the address or the token.
    const cause = error instanceof Error ? error.cause : undefined;
    throw unusable(names, url, errorCode(cause) ?? noAnswer);
  });
  if (status === 401 || status === 403) throw unusable(names, url, `it refuses the token, with ${status}`);
  if (status !== 200) throw unusable(names, url, `it answered ${status} to a GET of one key`);
}

/** An engine over the Redis of the user's own, which has answered. Rejects within 3 s if it does not. */
export async function connectToRedis(url: string): Promise<KvEngine> {
  const engine = redisEngine(url);
  try {
    await inTime(engine.call('PING'));
    return engine;
  } catch (error) {
    await engine.close();
    throw unusable(['REDIS_URL'], url, error instanceof CommandError ? error.message : noAnswer);
  }
}

/** Where a server is, without the password that its URL may hold. */
export function hostOf(url: string): string {
  return new URL(url).host;
}

const noAnswer = 'no answer';

async function ask(url: string, token: string): Promise<number> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(['GET', 'identity-link:is-it-there']),
    signal: AbortSignal.timeout(patienceSeconds * 1000),
  });
  await response.body?.cancel();
  return response.status;
}

function inTime<T>(answer: Promise<T>): Promise<T> {
  const late = pause(patienceSeconds * 1000).then(() => {
    throw new Error(`no answer within ${patienceSeconds} s`);
  });
  return Promise.race([answer, late]);
}

function unusable(names: readonly string[], url: string, reason: string | undefined): Error {
  return new Error(
    `The local stack cannot start: ${names[0]} names ${hostOf(url)}, which cannot be used (${reason ?? noAnswer}). ` +
      `Mend that, or leave ${names.join(' and ')} empty to use the embedded part.`,
  );
}
