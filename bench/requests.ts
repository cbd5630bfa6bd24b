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

export type Users = ReturnType<typeof usersFrom>;

/** Returns existing users of one application. Each function returns a value of the next user. */
export function usersFrom(ids: readonly string[], idp: Emulator) {
  const expires = { exp: now() + 6 * 3600 };
  const tokens = ids.map((id) => tokenFor(idp, id, expires));
  let count = 0;
  const next = (values: readonly string[]) => values[count++ % values.length] ?? '';
  return {
    id: () => next(ids),
    /** Returns the same session token of a user each time. */
    token: () => next(tokens),
    newToken: () => tokenFor(idp, next(ids), expires),
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
