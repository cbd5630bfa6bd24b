import { errorCode, messageOf } from '#lib/base/errors';
import { pendingMigrations } from '#lib/storage/migrations';

/** Returns the host and port of a URL, without the credentials. */
export const getHost = (url: string): string => new URL(url).host;

/** Returns the pending migrations of the user's database, as far as its role can read them. Rejects if it is unusable. */
export async function missingMigrations(databaseUrl: string): Promise<readonly string[]> {
  const pending = await pendingMigrations(databaseUrl).catch((error: unknown) => {
    throw unusableError('DATABASE_URL', databaseUrl, messageOf(error));
  });
  return pending ?? [];
}

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
