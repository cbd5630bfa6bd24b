import { type Call, call } from '../../tests/harness/history';
import {
  deliver,
  me,
  type ParsedResponse,
  register,
  send,
  signatureHeaders,
  tokenFor,
  userCreated,
} from '../../tests/harness/requests';
import type { TestService } from '../../tests/harness/service';

/** A kind of request in the traffic mix. */
export interface Kind {
  readonly name: string;
  /** Percentage of the requests. */
  readonly share: number;
  /** Expected statuses while the cache and the database work. */
  readonly statuses: readonly number[];
  /** True if the request may get a 500 while the database is unavailable. */
  readonly needsDatabase: boolean;
  send(url: string): Promise<ParsedResponse>;
}

const USERS_PER_GROUP = 100;

/** The mix of valid and invalid requests, and the history of the valid requests. */
export interface Traffic {
  readonly kinds: readonly Kind[];
  readonly calls: readonly Call[];
  /** Users for whom at least one response had a status below 300. */
  readonly acknowledged: ReadonlySet<string>;
  /**
   * Users whose webhook event (`user.created`) got a status other than 200. An event without a response is not included.
   * `redeliver` sends the events of these users again.
   */
  readonly undelivered: Set<string>;
  redeliver(): Promise<void>;
}

/**
 * Prepares the traffic. Creates two groups of users, `cached` and `uncached`, with one request per user. The kind `cache
 * miss` deletes the cache entry of an `uncached` user before it sends a request for this user.
 */
export async function prepareTraffic(service: TestService): Promise<Traffic> {
  const { idp, kv } = service;
  const calls: Call[] = [];
  const acknowledged = new Set<string>();
  const undelivered = new Set<string>();
  const expires = { exp: Math.floor(Date.now() / 1000) + 24 * 3600 };
  const tokens = (kind: string) =>
    Array.from({ length: USERS_PER_GROUP }, (_, index) => tokenFor(idp, `user_${kind}_${index}`, expires));
  const [cached, uncached] = [tokens('cached'), tokens('uncached')];
  const randomIndex = (length: number) => Math.floor(Math.random() * length);
  const pick = (from: readonly string[]) => from[randomIndex(from.length)] ?? '';
  let count = 0;
  const recent: string[] = [];
  const nextId = () => {
    const id = `user_new_${count}`;
    count += 1;
    recent[count % 1000] = id;
    return id;
  };
  const recentId = () => pick(recent) || 'user_cached_0';

  /** Sends a request for a user and records the call. Rejects if there is no response. */
  const record = async (
    id: string,
    entryPoint: Call['entryPoint'],
    request: () => Promise<ParsedResponse>,
  ): Promise<ParsedResponse> => {
    const { call: made, response } = await call(id, entryPoint, request);
    calls.push(made);
    if (response === undefined) throw new Error('There was no response');
    if (response.status < 300) acknowledged.add(id);
    return response;
  };
  const guard = (url: string, id: string, token: string) => record(id, 'guard', () => me(url, token));
  const registerBy = (url: string, id: string) =>
    record(id, 'register', () => register(url, pick(cached), { identityProviderUserId: id }));
  const sendEvent = async (url: string, id: string): Promise<ParsedResponse> => {
    const response = await record(id, 'webhook', () => deliver(url, userCreated(id)));
    if (response.status !== 200) undelivered.add(id);
    return response;
  };

  const kinds: Kind[] = [
    {
      name: 'cache hit',
      share: 45,
      statuses: [200],
      needsDatabase: false,
      send(url) {
        const index = randomIndex(USERS_PER_GROUP);
        return guard(url, `user_cached_${index}`, cached[index] ?? '');
      },
    },
    {
      name: 'cache miss',
      share: 10,
      statuses: [200],
      needsDatabase: true,
      async send(url) {
        const index = randomIndex(USERS_PER_GROUP);
        await kv.engine.call('DEL', `auth:user-id-by-idp:user_uncached_${index}`);
        return guard(url, `user_uncached_${index}`, uncached[index] ?? '');
      },
    },
    {
      name: 'first request of a user',
      share: 5,
      statuses: [200],
      needsDatabase: true,
      send(url) {
        const id = nextId();
        return guard(url, id, tokenFor(idp, id));
      },
    },
    {
      name: 'registration of a new user',
      share: 12,
      // 200 if a request of another kind has taken the new id from `recent` and has registered the user first.
      statuses: [200, 201],
      needsDatabase: true,
      send: (url) => registerBy(url, nextId()),
    },
    {
      name: 'registration of a recent user',
      share: 4,
      statuses: [200, 201],
      needsDatabase: true,
      send: (url) => registerBy(url, recentId()),
    },
    {
      name: 'event of a new user',
      share: 10,
      statuses: [200],
      needsDatabase: true,
      send: (url) => sendEvent(url, nextId()),
    },
    {
      name: 'event of a recent user',
      share: 5,
      statuses: [200],
      needsDatabase: true,
      send: (url) => sendEvent(url, recentId()),
    },
    {
      name: 'event with an invalid signature',
      share: 3,
      statuses: [400],
      needsDatabase: false,
      send: (url) => deliver(url, userCreated('user_forged'), signatureHeaders(userCreated('user_else'))),
    },
    {
      name: 'request without a session',
      share: 4,
      statuses: [401],
      needsDatabase: false,
      send: (url) => send(`${url}/users/v1/me`),
    },
    {
      name: 'registration with an invalid body',
      share: 2,
      statuses: [400],
      needsDatabase: false,
      send: (url) => register(url, pick(cached), '{"identityProviderUserId":'),
    },
  ];
  for (const [index, token] of cached.entries()) await guard(service.url, `user_cached_${index}`, token);
  for (const [index, token] of uncached.entries()) await guard(service.url, `user_uncached_${index}`, token);
  return {
    kinds,
    calls,
    acknowledged,
    undelivered,
    async redeliver() {
      for (const id of [...undelivered]) {
        const { status } = await sendEvent(service.url, id);
        if (status === 200) undelivered.delete(id);
      }
    },
  };
}
