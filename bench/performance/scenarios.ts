import { randomUUID } from 'node:crypto';
import { bearer, signatureHeaders, tokenFor, userCreated } from '../../tests/harness/requests';
import type { Fixtures } from './fixtures';
import type { LoadRequest } from './load';
import type { Target } from './targets';

/**
 * Creates the requests of one sample (one measurement). For cache misses of existing users, also inserts a new row for each
 * request.
 */
type Prepare = (count: number) => Promise<LoadRequest[]>;

/** A kind of request, such as a cache hit. */
export interface Scenario {
  readonly name: string;
  readonly prepare: Prepare;
}

const KNOWN_USERS = 100;
const EXISTING_ROWS = 20_000;
const HOUR_SECONDS = 3_600;
/** `forge` replaces this number of characters at the end of a token. This makes the signature of the token invalid. */
const SIGNATURE_TAIL = 40;

const statusOf = { get: 200, unauthorized: 401, invalidSignature: 400 } as const;

const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));

/** Returns the cookies of a browser that is signed in to a production instance of the provider. */
const cookie = (token: string) => ({
  cookie: `__client_uat=${Math.floor(Date.now() / 1000) - HOUR_SECONDS}; __session=${token}`,
});

const me = (headers: Record<string, string>, status: number = statusOf.get): LoadRequest => ({
  method: 'GET',
  path: '/users/v1/me',
  headers,
  status,
});

/** Returns requests to the only route of the bare Next.js application, the baseline in bench/performance/baselines/bare. */
export const hello = (count: number): LoadRequest[] =>
  times(count, () => ({ method: 'GET', path: '/hello', headers: {}, status: 200 }));

export const greeting: Scenario = { name: 'GET /hello', prepare: async (count) => hello(count) };

/**
 * Returns the scenarios for one target (a measured server). Each target has its own users and credentials, so the targets do
 * not share cache entries.
 */
export async function scenariosFor(
  { name: target, creates }: Pick<Target, 'name' | 'creates'>,
  { idp, pool, keys }: Fixtures,
  /** Users that already have a row. If omitted, this function inserts `EXISTING_ROWS` users. */
  rows?: { readonly count: number; readonly name: (index: number) => string },
): Promise<Scenario[]> {
  const expires = { exp: Math.floor(Date.now() / 1000) + 6 * HOUR_SECONDS };
  let count = 0;
  const fresh = () => {
    count += 1;
    return `user_${target}_new_${count}`;
  };
  const known = (index: number) => `user_${target}_known_${index % KNOWN_USERS}`;
  const tokenOf = (user: string) => tokenFor(idp, user, expires);
  const insert = async (users: readonly string[]) => {
    await pool.query(
      'INSERT INTO users (id, identity_provider_user_id) SELECT gen_random_uuid(), unnest($1::text[])',
      [users],
    );
    return users;
  };
  const ownRows = { count: EXISTING_ROWS, name: (index: number) => `user_${target}_existing_${index}` };
  if (!rows) await insert(times(EXISTING_ROWS, ownRows.name));
  const existing = rows ?? ownRows;
  const nextExisting = () => existing.name(Math.floor(Math.random() * existing.count));
  const knownTokens = times(KNOWN_USERS, (index) => tokenOf(known(index)));
  const knownToken = (index: number) => knownTokens[index % KNOWN_USERS] ?? '';
  const register = (index: number, identityProviderUserId: string, status: number): LoadRequest => ({
    method: 'POST',
    path: '/auth/v1/register',
    headers: { ...bearer(knownToken(index)), 'content-type': 'application/json' },
    body: JSON.stringify({ identityProviderUserId }),
    status,
  });
  const event = (user: string, status: number, secret = keys.signing): LoadRequest => {
    const body = userCreated(user);
    return {
      method: 'POST',
      path: '/webhooks/idp/v1/user-created',
      headers: { 'content-type': 'application/json', ...signatureHeaders(body, { secret }) },
      body,
      status,
    };
  };
  const otherSecret = `whsec_${Buffer.from(randomUUID()).toString('base64')}`;
  const forge = (token: string) => token.slice(0, -SIGNATURE_TAIL) + 'A'.repeat(SIGNATURE_TAIL);

  const each = (name: string, make: (index: number) => LoadRequest): Scenario => ({
    name,
    prepare: async (amount) => times(amount, make),
  });
  return [
    each('hit, bearer, known credential', (index) => me(bearer(knownToken(index)))),
    each('hit, bearer, each credential new', (index) => me(bearer(tokenOf(known(index))))),
    each('hit, cookie, known credential', (index) => me(cookie(knownToken(index)))),
    each('hit, cookie, each credential new', (index) => me(cookie(tokenOf(known(index))))),
    {
      name: 'cache miss of an existing user',
      prepare: async (amount) =>
        (await insert(times(amount, fresh))).map((user) => me(bearer(tokenOf(user)))),
    },
    each('first request of a user', () => me(bearer(tokenOf(fresh())))),
    each('401, no credential', () => me({}, statusOf.unauthorized)),
    each('401, forged token', (index) => me(bearer(forge(knownToken(index))), statusOf.unauthorized)),
    each('register, existing', (index) => register(index, nextExisting(), 200)),
    each('register, new', (index) => register(index, fresh(), creates)),
    each('webhook, new', () => event(fresh(), 200)),
    each('webhook, duplicate', () => event(nextExisting(), 200)),
    each('webhook, forged', () => event(fresh(), statusOf.invalidSignature, otherSecret)),
  ];
}
