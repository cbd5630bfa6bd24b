import { describeError } from './base/errors';
import { rateLimitedWarning } from './base/log';
import type { Kind, Sessions } from './core/ports';
import { firstOf } from './core/sessions';
import { isIdentityProviderUserId } from './core/values';
import type { AskProviders } from './http/credential';

/** A provider of sessions beside Clerk, which providers/index.ts lists. */
export interface Provider extends Sessions {
  /** The name in the log. */
  readonly name: string;
  /** Start of all its user ids, which no other provider has. Default: empty, so that it can name every user. */
  readonly prefix?: string;
  /** Returns those of the ids that it has. Only commands call this function. */
  has?(kind: Kind, ids: readonly string[]): Promise<readonly string[]>;
}

/** Time limit of a provider. */
const PROVIDER_MS = 4_000;

const warn = rateLimitedWarning('credential not verified');

/** Throws if a provider could name a user of another one or of Clerk, unless it has no prefix. Only one may have none. */
function checkPrefixes(providers: readonly Provider[]): void {
  const prefixes = ['user_', ...providers.map(({ prefix = '' }) => prefix)];
  for (const [index, prefix] of prefixes.entries())
    for (const other of prefixes.slice(index + 1))
      if (prefix === other || (prefix && other && (prefix.startsWith(other) || other.startsWith(prefix))))
        throw new Error(`The prefixes of two providers overlap: "${prefix}" and "${other}"`);
}

/**
 * Returns a function that queries the providers about the credential of a request. They see nothing else of the request. The first
 * one that knows it decides. If that one fails, the credential is unchecked, because no other one can check it. Returns undefined for an
 * empty list. Throws for a list in which two users could get the same id.
 */
export function createAskProviders(providers: readonly Provider[]): AskProviders | undefined {
  checkPrefixes(providers);
  if (providers.length === 0) return undefined;
  const all = providers.map((provider) => ({
    name: provider.name,
    prefix: provider.prefix ?? '',
    sessions: firstOf([provider], PROVIDER_MS, (error) =>
      warn({ provider: provider.name, error: describeError(error) }),
    ),
  }));
  return async ({ header, value }, { origin, pathname }) => {
    const request = new Request(origin + pathname, { headers: { [header]: value } });
    for (const { name: provider, prefix, sessions } of all) {
      const verdict = await sessions.authenticate(request);
      if (!verdict) continue;
      const { user, accessToken } = verdict;
      const isOwn = user === undefined || (isIdentityProviderUserId(user) && user.startsWith(prefix));
      return isOwn && !accessToken ? { ...verdict, provider } : { reason: 'no-user-id', provider };
    }
    return undefined;
  };
}
