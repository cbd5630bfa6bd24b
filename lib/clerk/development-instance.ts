import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod/mini';
import { parseEnvironmentSubset } from '../base/env';
import { errorCode, TransientError } from '../base/errors';
import { retry } from '../base/retry';
import { limitBody } from '../core/body';
import { fieldsOf, parseJson } from '../core/values';
import { API_VERSION } from './sdk-version';
import { variables } from './variables';

/** Begins the name of everything that a run creates, so that a later run finds and removes it. */
export const MARK = 'identity-link-verify-';
const MARKED = new RegExp(`^${MARK}[0-9a-z-]+(?:\\+clerk_test@example\\.com)?$`);
/** Origin of the page at which a test user signs in. */
export const PAGE = 'http://localhost:3000';

const TIMEOUT_MS = 20_000;
/** Maximum total length of the pauses of a call that gets a 429. */
const PAUSE_SECONDS = 120;
const LIMITS = { maxBytes: 1024 * 1024, notUtf8: 'The body must be UTF-8' };
/** An id that may be a segment of a path. */
const ID = /^\w{1,64}$/;

const { IDP_SECRET_KEY, IDP_PUBLISHABLE_KEY, CLERK_API_URL, CLERK_FAPI_URL } = variables.shape;
const Keys = z.object({ IDP_SECRET_KEY, IDP_PUBLISHABLE_KEY, CLERK_API_URL, CLERK_FAPI_URL });

/** A response. Without one, the status is 0, and `body` is the reason. */
export type Reply = Readonly<Pick<Response, 'status' | 'headers'> & { body: unknown }>;

/** Returns the value at a path of JSON, or undefined. */
export const at = (json: unknown, ...path: readonly (string | number)[]): unknown =>
  path.reduce((value, key) => fieldsOf(value)[key], json);

/** Returns an array, or an empty one for another value. */
export const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** Returns the id at a path of JSON. Returns undefined for a text that could change the path of a call. */
function idAt(json: unknown, ...path: readonly (string | number)[]): string | undefined {
  const id = at(json, ...path);
  return typeof id === 'string' && ID.test(id) ? id : undefined;
}

/** Describes a response by its status and Clerk's code of the error. */
export const describeReply = ({ status, body }: Reply): string =>
  status === 0 ? `no response (${body})` : `status ${status} ${at(body, 'errors', 0, 'code') ?? ''}`.trim();

/**
 * Connects to the two APIs of the instance. Repeats a call that gets a 429. A call ends at its time limit, and at `signal`.
 * `created` has the paths of the users and the organization of this run.
 */
export function connectInstance(signal: AbortSignal, created: string[] = []) {
  const keys = parseEnvironmentSubset(Keys);
  const issuer = keys.IDP_PUBLISHABLE_KEY.frontendApi;
  const { CLERK_API_URL: backendUrl = 'https://api.clerk.com', CLERK_FAPI_URL: frontendUrl = issuer } = keys;
  /** Value of `Retry-After` of each response with status 429. */
  const pauses: (string | null)[] = [];

  async function callOnce(url: URL, init: RequestInit, milliseconds: number): Promise<Reply> {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(milliseconds)]);
    try {
      const response = await fetch(url, { ...init, redirect: 'manual', signal: limit });
      const { status, headers } = response;
      return { status, headers, body: parseJson(await limitBody(response, LIMITS).text()) };
    } catch (error) {
      return { status: 0, headers: new Headers(), body: errorCode(error) };
    }
  }

  /** Returns a function that sends a call, such as `GET /v1/users`. */
  const sender =
    (api: string, encode: (body: object) => string, apiHeaders: Readonly<Record<string, string>>) =>
    async (operation: string, body?: object, headers = {}, timeoutMs = TIMEOUT_MS): Promise<Reply> => {
      const [method = '', path = ''] = operation.split(' ');
      const init = { method, headers: { ...apiHeaders, ...headers }, body: body ? encode(body) : null };
      const pause = (milliseconds: number) => sleep(milliseconds, undefined, { signal });
      return retry({ seconds: PAUSE_SECONDS, sleep: pause }, async () => {
        const reply = await callOnce(new URL(path, api), init, timeoutMs);
        if (reply.status !== 429) return reply;
        pauses.push(reply.headers.get('retry-after'));
        throw new TransientError('the instance limits the rate of calls', Number(pauses.at(-1)) || 0);
      });
    };
  const backend = sender(backendUrl, JSON.stringify, {
    authorization: `Bearer ${keys.IDP_SECRET_KEY}`,
    'clerk-api-version': API_VERSION,
    'content-type': 'application/json',
  });
  const frontend = sender(frontendUrl, (form) => new URLSearchParams(Object.entries(form)).toString(), {
    'content-type': 'application/x-www-form-urlencoded',
    origin: PAGE,
  });
  return { frontendUrl, issuer, pauses, created, backend, frontend };
}

export type Instance = ReturnType<typeof connectInstance>;

/** Returns the paths of those rows that a run has created. */
const markedPaths = (path: string, rows: unknown, ...name: readonly (string | number)[]) =>
  list(rows)
    .filter((row) => MARKED.test(String(at(row, ...name))) && idAt(row, 'id') !== undefined)
    .map((row) => `${path}/${idAt(row, 'id')}`);

/** Removes the users and organizations of this run, and those of others that Clerk's search finds. Returns their number. */
export async function removeTestData({ backend, created }: Instance): Promise<number> {
  const users = await backend(`GET /v1/users?limit=100&query=${MARK}`);
  if (users.status !== 200)
    throw new Error(`The Backend API does not list users: ${describeReply(users)}. Check the secret key.`);
  // An instance without organizations responds with an error.
  const { body } = await backend(`GET /v1/organizations?limit=100&query=${MARK}`);
  const paths = new Set([
    ...created,
    ...markedPaths('/v1/users', users.body, 'email_addresses', 0, 'email_address'),
    ...markedPaths('/v1/organizations', at(body, 'data'), 'name'),
  ]);
  for (const path of paths) {
    const reply = await backend(`DELETE ${path}`);
    if (reply.status !== 200 && reply.status !== 404)
      throw new Error(`Not removed: ${path} (${describeReply(reply)}). Remove it in the dashboard.`);
  }
  return paths.size;
}

/**
 * Creates two users with sessions. If the instance allows it, also creates an organization to which the second user belongs, and
 * signs this user in as a page does. Throws if the instance creates no user or session.
 */
export async function createTestData(instance: Instance) {
  const { backend, frontend } = instance;
  const mark = `${MARK}${randomUUID().slice(0, 8)}`;

  /** Returns a text of the response. Throws without it. */
  async function create(operation: string, body: object, field = 'id'): Promise<string> {
    const reply = await backend(operation, body);
    const value = field === 'id' ? idAt(reply.body, field) : at(reply.body, field);
    if (typeof value !== 'string') throw new Error(`${operation} fails: ${describeReply(reply)}`);
    return value;
  }
  const createUser = (name: string) =>
    create('POST /v1/users', {
      email_address: [`${mark}-${name}+clerk_test@example.com`],
      external_id: `${mark}-${name}`,
      skip_password_requirement: true,
    });
  const [one, other] = [await createUser('one'), await createUser('other')];
  instance.created.push(`/v1/users/${one}`, `/v1/users/${other}`);
  const tokenOf = (sessionId: string) => create(`POST /v1/sessions/${sessionId}/tokens`, {}, 'jwt');
  const session = await create('POST /v1/sessions', { user_id: one });

  const organization = await backend('POST /v1/organizations', { name: mark, created_by: one });
  const organizationId = idAt(organization.body, 'id');
  const path = `/v1/organizations/${organizationId}`;
  if (organizationId !== undefined) instance.created.push(path);
  await backend(`POST ${path}/memberships`, { user_id: other, role: 'org:member' });
  const active = organizationId === undefined ? {} : { active_organization_id: organizationId };
  const otherSession = await create('POST /v1/sessions', { user_id: other, ...active });

  const ticket = await create('POST /v1/sign_in_tokens', { user_id: other }, 'token');
  const device = await frontend(`POST /v1/dev_browser?__clerk_api_version=${API_VERSION}`);
  // A development instance recognizes the browser by a parameter.
  const query = new URLSearchParams({
    __clerk_api_version: API_VERSION,
    __clerk_db_jwt: String(at(device.body, 'id')),
    __clerk_testing_token: await create('POST /v1/testing_tokens', {}, 'token'),
  });
  const signIn = await frontend(`POST /v1/client/sign_ins?${query}`, { strategy: 'ticket', ticket });
  const browserSession = idAt(signIn.body, 'response', 'created_session_id');
  const minted = await frontend(`POST /v1/client/sessions/${browserSession}/tokens?${query}`);
  return {
    ...instance,
    mark,
    one,
    other,
    session,
    token: await tokenOf(session),
    otherSession,
    tokenOf,
    organization: { id: organizationId, path, problem: describeReply(organization) },
    browser: {
      query,
      session: browserSession,
      token: at(minted.body, 'jwt'),
      problem: describeReply(signIn),
    },
  };
}
