import { z } from 'zod';
import {
  type Answer,
  deliver,
  me,
  register,
  send,
  signatureHeaders,
  tokenFor,
  userCreated,
} from '../tests/harness/requests';
import type { TestService } from '../tests/harness/service';

/** One kind of request of the mixture. */
export interface Kind {
  readonly name: string;
  /** How many of a hundred requests are of this kind. */
  readonly share: number;
  /** The answers that are right while nothing fails. */
  readonly statuses: readonly number[];
  /** Whether the answer is a 500 while the database is out. */
  readonly needsDatabase: boolean;
  send(url: string): Promise<Answer>;
}

const CACHED_USERS = 100;
const Linked = z.object({ userId: z.string(), identityProviderUserId: z.string() });

/** The requests that a service gets, good and bad, and what they said of the users in them. */
export interface Traffic {
  readonly kinds: readonly Kind[];
  /** The internal ids that answers gave for each identity-provider user: one, if all is well. */
  readonly linked: ReadonlyMap<string, ReadonlySet<string>>;
  /** Users whose event or registration was acknowledged. */
  readonly acknowledged: ReadonlySet<string>;
  /** Users whose event was answered by a 500: the sender delivers those again. */
  readonly undelivered: Set<string>;
  redeliver(): Promise<void>;
}

/** Prepares the traffic; the users that are always to be found in the cache are put there now. */
export async function prepareTraffic(service: TestService): Promise<Traffic> {
  const { idp, kv } = service;
  const linked = new Map<string, Set<string>>();
  const acknowledged = new Set<string>();
  const undelivered = new Set<string>();
  const expires = { exp: Math.floor(Date.now() / 1000) + 24 * 3600 };
  const tokens = (kind: string) =>
    Array.from({ length: CACHED_USERS }, (_, index) => tokenFor(idp, `user_${kind}_${index}`, expires));
  const [cached, uncached] = [tokens('cached'), tokens('uncached')];
  const any = (index: number) => Math.floor(Math.random() * index);
  const pick = (from: readonly string[]) => from[any(from.length)] ?? '';
  let count = 0;
  const recent: string[] = [];
  const fresh = () => {
    const id = `user_fresh_${count}`;
    count += 1;
    recent[count % 1000] = id;
    return id;
  };
  const known = () => pick(recent) || 'user_cached_0';

  const note = (answer: Answer): Answer => {
    const { data } = Linked.safeParse(answer.body);
    if (answer.status < 300 && data) {
      acknowledged.add(data.identityProviderUserId);
      const ids = linked.get(data.identityProviderUserId) ?? new Set();
      linked.set(data.identityProviderUserId, ids.add(data.userId));
    }
    return answer;
  };
  const announce = async (url: string, id: string): Promise<Answer> => {
    const answer = await deliver(url, userCreated(id));
    if (answer.status === 200) acknowledged.add(id);
    else undelivered.add(id);
    return answer;
  };

  const kinds: Kind[] = [
    {
      name: 'hit',
      share: 45,
      statuses: [200],
      needsDatabase: false,
      send: async (url) => note(await me(url, pick(cached))),
    },
    {
      name: 'miss',
      share: 10,
      statuses: [200],
      needsDatabase: true,
      async send(url) {
        const index = any(CACHED_USERS);
        await kv.engine.call('DEL', `auth:user-id-by-idp:user_uncached_${index}`);
        return note(await me(url, uncached[index] ?? ''));
      },
    },
    {
      name: 'first sight',
      share: 5,
      statuses: [200],
      needsDatabase: true,
      send: async (url) => note(await me(url, tokenFor(idp, fresh()))),
    },
    {
      name: 'register, new',
      share: 12,
      // 200 where the same id came a second time, and came through first.
      statuses: [200, 201],
      needsDatabase: true,
      send: async (url) => note(await register(url, pick(cached), { identityProviderUserId: fresh() })),
    },
    {
      name: 'register, again',
      share: 4,
      statuses: [200, 201],
      needsDatabase: true,
      send: async (url) => note(await register(url, pick(cached), { identityProviderUserId: known() })),
    },
    {
      name: 'event, new',
      share: 10,
      statuses: [200],
      needsDatabase: true,
      send: (url) => announce(url, fresh()),
    },
    {
      name: 'event, again',
      share: 5,
      statuses: [200],
      needsDatabase: true,
      send: (url) => announce(url, known()),
    },
    {
      name: 'bad signature',
      share: 3,
      statuses: [400],
      needsDatabase: false,
      send: (url) => deliver(url, userCreated('user_forged'), signatureHeaders(userCreated('user_else'))),
    },
    {
      name: 'no session',
      share: 4,
      statuses: [401],
      needsDatabase: false,
      send: (url) => send(`${url}/users/v1/me`),
    },
    {
      name: 'bad body',
      share: 2,
      statuses: [400],
      needsDatabase: false,
      send: (url) => register(url, pick(cached), '{"identityProviderUserId":'),
    },
  ];
  for (const token of [...cached, ...uncached]) note(await me(service.url, token));
  return {
    kinds,
    linked,
    acknowledged,
    undelivered,
    async redeliver() {
      for (const id of [...undelivered]) {
        const { status } = await announce(service.url, id);
        if (status === 200) undelivered.delete(id);
      }
    },
  };
}
