import type { Emulator } from 'clerk-emulator';
import {
  bearer,
  HOOK,
  ME,
  now,
  REGISTER,
  signatureHeaders,
  tokenFor,
  userCreated,
} from '../tests/harness/requests';

/** A request and the expected status of its response. */
export interface BenchRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
  readonly status: number;
}

/** Existing users of one application. Each method returns a value of the next user. */
export interface Users {
  id(): string;
  /** Returns the same session token each time. */
  token(): string;
  newToken(): string;
  /** Returns the same session token each time. An organization is active in the session. */
  memberToken(): string;
  /** Returns the same OAuth access token each time. */
  accessToken(): string;
}

/** Origin of the protected resource. */
export const PUBLIC_ORIGIN = 'https://api.example.com';

export function usersFrom(ids: readonly string[], idp: Emulator): Users {
  const expires = { exp: now() + 6 * 3600 };
  const tokens = ids.map((id) => tokenFor(idp, id, expires));
  const organization = { o: { id: 'org_bench', rol: 'admin' } };
  const memberTokens = ids.map((id) => tokenFor(idp, id, { ...expires, ...organization }));
  const claims = {
    sid: undefined,
    client_id: 'client_bench',
    scope: 'read',
    aud: `${PUBLIC_ORIGIN}/oauth/v1/context`,
  };
  const accessTokens = ids.map((id) =>
    tokenFor(idp, id, { ...expires, ...claims }, { header: { typ: 'at+jwt' } }),
  );
  let count = 0;
  const next = (values: readonly string[]) => values[count++ % values.length] ?? '';
  return {
    id: () => next(ids),
    token: () => next(tokens),
    newToken: () => tokenFor(idp, next(ids), expires),
    memberToken: () => next(memberTokens),
    accessToken: () => next(accessTokens),
  };
}

/** The request of the bare route, with a body if it is a POST. */
export const hello = (method: BenchRequest['method'] = 'GET'): BenchRequest =>
  method === 'GET' ? get('/hello', {}) : post('/hello', '{}', {});

const get = (path: string, headers: Record<string, string>, status = 200): BenchRequest => ({
  method: 'GET',
  path,
  headers,
  status,
});

const post = (path: string, body: string, headers: Record<string, string>): BenchRequest => ({
  method: 'POST',
  path,
  headers: { 'content-type': 'application/json', ...headers },
  body,
  status: 200,
});

const deliver = (event: string) => post(HOOK, event, signatureHeaders(event));

export const cacheHit = (users: Users) => get(ME, bearer(users.token()));

/** Kinds of requests by the title of their row in the table. */
export const SCENARIOS: Readonly<Record<string, (users: Users) => BenchRequest>> = {
  'cache hit, repeated session tokens': cacheHit,
  'cache hit, each session token new': (users) => get(ME, bearer(users.newToken())),
  '401, no credential': () => get(ME, {}, 401),
  'registration of an existing user': (users) =>
    post(REGISTER, JSON.stringify({ identityProviderUserId: users.id() }), bearer(users.token())),
  'webhook of an existing user': (users) => deliver(userCreated(users.id())),
};

/** Kinds of requests to the routes of bench/routes/, which only a copy of this checkout has. */
export const OWN_SCENARIOS: typeof SCENARIOS = {
  'cache hit with `guardTenant`': (users) => get('/tenants/v1/context', bearer(users.memberToken())),
  'cache hit with an access token': (users) => get('/oauth/v1/context', bearer(users.accessToken())),
};
