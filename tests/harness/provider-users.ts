import { vi } from 'vitest';

/** A user in the identity provider's database. */
interface StoredUser {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly externalId?: string | null | undefined;
  readonly updatedAt?: number;
}

/** A stub of the identity provider's Backend API. It replaces the global function `fetch`. */
export interface ProviderUsers {
  /** Query strings of the requests for users so far. */
  readonly queries: string[];
  /** Responses to the next requests. If the list is empty, a request gets a page of `users`. */
  readonly failures: (() => Response | Promise<Response>)[];
  users: readonly StoredUser[];
  restore(): void;
}

function listOf(users: readonly StoredUser[], query: URLSearchParams): readonly StoredUser[] {
  const ids = query.getAll('user_id').map((id) => id.slice(1));
  if (ids.length > 0) return users.filter(({ id }) => ids.includes(id));
  const [after, offset] = [query.get('created_at_after'), Number(query.get('offset'))];
  const later = users.filter(({ createdAt }) => after === null || createdAt > Number(after));
  return later.slice(offset, offset + Number(query.get('limit')));
}

/** Replaces `fetch` by a Backend API that lists the `users` of the returned object, in their order. */
export function stubProviderUsers(): ProviderUsers {
  const fetching = vi.spyOn(globalThis, 'fetch').mockImplementation(async (input) => {
    const { pathname, search, searchParams } = new URL(String(input));
    // The SDK requests the number of users together with each list.
    if (pathname.endsWith('/count')) return Response.json({ object: 'total_count', total_count: 0 });
    provider.queries.push(search);
    const fail = provider.failures.shift();
    if (fail) return fail();
    return Response.json(
      listOf(provider.users, searchParams).map(({ id, createdAt, externalId, updatedAt }) => ({
        object: 'user',
        id,
        created_at: createdAt,
        external_id: externalId,
        updated_at: updatedAt,
      })),
    );
  });
  const provider: ProviderUsers = {
    queries: [],
    failures: [],
    users: [],
    restore: () => fetching.mockRestore(),
  };
  return provider;
}
