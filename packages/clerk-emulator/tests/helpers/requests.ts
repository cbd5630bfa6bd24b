import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingHttpHeaders, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { isClerkAPIResponseError } from '@clerk/backend/errors';
import type { Emulator } from '../../src/emulator';
import { type Signing, signToken } from '../../src/testing';

/** Returns the error of a call of the Backend SDK. Throws if the call succeeds or fails without an error response. */
export async function errorOf(call: Promise<unknown>) {
  const error = await call.catch((reason: unknown) => reason);
  if (!isClerkAPIResponseError(error)) throw new Error('The call has no error response.', { cause: error });
  const { status, retryAfter, errors } = error;
  return { status, retryAfter, code: errors[0]?.code, parameter: errors[0]?.meta?.paramName };
}

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** Returns a session token that is valid for ten minutes. The user need not exist. */
export function tokenFor(
  emulator: Pick<Emulator, 'issuer' | 'signingKey'>,
  sub: string,
  claims: Record<string, unknown> = {},
  signing?: Signing,
): string {
  const iat = Math.floor(Date.now() / 1000);
  const session = { sub, sid: `sess_${randomUUID()}`, iss: emulator.issuer, sts: 'active', v: 2 };
  return signToken(emulator, { ...session, iat, nbf: iat - 10, exp: iat + 600, ...claims }, signing);
}

/**
 * Sends a request with `node:http`, because `fetch` normalizes the path and cannot set the `Host` header. `body` of the result
 * is parsed if it is JSON.
 */
export async function sendRequest(
  method: string,
  url: string,
  headers: Record<string, string> = {},
  body = '',
) {
  const { origin, hostname, port } = new URL(url);
  const path = url.slice(origin.length);
  const length = { 'content-length': Buffer.byteLength(body) };
  const sent = request({ method, hostname, port, path, agent: false, headers: { ...length, ...headers } });
  sent.end(body);
  const [response] = await once(sent, 'response');
  const received = await text(response);
  const all: IncomingHttpHeaders = response.headers;
  const isJson = all['content-type'] === 'application/json';
  return {
    status: Number(response.statusCode),
    headers: all,
    body: isJson ? JSON.parse(received) : received,
  };
}
