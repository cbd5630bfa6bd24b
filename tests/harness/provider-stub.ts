import { vi } from 'vitest';
import type { Kind } from '#lib/core/ports';

/** A user or an organization in the identity provider's database. */
interface StoredEntry {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly updatedAt?: number;
}

/** A stub of the identity provider's Backend API. It replaces the global function `fetch`. */
export interface ProviderStub {
  /** Query strings of the requests for users or organizations so far. */
  readonly queries: string[];
  /** Responses to the next requests. If the list is empty, a request gets a page of `entries`. */
  readonly failures: (() => Response | Promise<Response>)[];
  /** The users and the organizations. */
  readonly entries: Record<Kind, readonly StoredEntry[]>;
  restore(): void;
}

function listOf(entries: readonly StoredEntry[], query: URLSearchParams): readonly StoredEntry[] {
  const ids = [...query.getAll('user_id'), ...query.getAll('organization_id')].map((id) => id.slice(1));
  if (ids.length > 0) return entries.filter(({ id }) => ids.includes(id));
  const [after, offset] = [query.get('created_at_after'), Number(query.get('offset'))];
  const later = entries.filter(({ createdAt }) => after === null || createdAt > Number(after));
  return later.slice(offset, offset + Number(query.get('limit')));
}

/** Replaces `fetch` by a Backend API that lists the `entries` of the returned object, in their order. */
export function stubProvider(): ProviderStub {
  const fetching = vi.spyOn(globalThis, 'fetch').mockImplementation(async (input) => {
    const { pathname, search, searchParams } = new URL(String(input));
    // The SDK requests the number of users together with each list.
    if (pathname.endsWith('/count')) return Response.json({ object: 'total_count', total_count: 0 });
    provider.queries.push(search);
    const fail = provider.failures.shift();
    if (fail) return fail();
    const kind = pathname.endsWith('/organizations') ? 'tenant' : 'user';
    const object = { user: 'user', tenant: 'organization' }[kind];
    const list = listOf(provider.entries[kind], searchParams).map(({ id, createdAt, updatedAt }) => ({
      object,
      id,
      created_at: createdAt,
      updated_at: updatedAt,
    }));
    return Response.json(kind === 'user' ? list : { data: list, total_count: 0 });
  });
  const provider: ProviderStub = {
    queries: [],
    failures: [],
    entries: { user: [], tenant: [] },
    restore: () => fetching.mockRestore(),
  };
  return provider;
}
