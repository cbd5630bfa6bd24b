import { createHmac, randomUUID } from 'node:crypto';
import type { Emulator } from 'clerk-emulator';
import { type Signing, signToken } from 'clerk-emulator/testing';
import { SIGNING_SECRET } from './keys';

/** A response with its parsed body. */
export interface ParsedResponse {
  readonly status: number;
  readonly body: unknown;
  readonly headers: Headers;
}

/** A response of the service, with the method and the path of its request. */
export interface SeenResponse {
  readonly method: string;
  readonly pathname: string;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

let watch: (response: SeenResponse) => void = () => undefined;

/** Sets the function that receives every later response of `send`. */
export function watchResponses(watcher: typeof watch): void {
  watch = watcher;
}

/** Sends a request with a timeout of 30 s. Does not follow redirects. Parses the response body if its content type is JSON. */
export async function send(url: string, init: RequestInit = {}): Promise<ParsedResponse> {
  const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(30_000), ...init });
  const text = await response.text();
  const { status, headers } = response;
  watch({ method: init.method ?? 'GET', pathname: new URL(url).pathname, status, headers, text });
  const isJson = text !== '' && headers.get('content-type')?.includes('application/json');
  return { status, body: isJson ? JSON.parse(text) : text, headers };
}

export const ME = '/users/v1/me';
export const REGISTER = '/auth/v1/register';
export const HOOK = '/webhooks/idp/v1/user-created';

/** Returns the Unix time in seconds. */
export const now = () => Math.floor(Date.now() / 1000);

/**
 * Returns a session token that is valid for ten minutes, so that it does not expire on a slow machine. The user need not
 * exist at the identity provider.
 */
export function tokenFor(
  idp: Pick<Emulator, 'issuer' | 'signingKey'>,
  sub: string,
  claims: Record<string, unknown> = {},
  signing?: Signing,
): string {
  const iat = now();
  const times = { iat, nbf: iat - 10, exp: iat + 600 };
  const session = { sub, sid: `sess_${randomUUID()}`, iss: idp.issuer, ...times, sts: 'active', v: 2 };
  return signToken(idp, { ...session, ...claims }, signing);
}

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** Returns the cookie header of a browser that is signed in. */
export const cookie = (token: string) => ({
  cookie: `__session=${token}; __client_uat=1; __clerk_db_jwt=x`,
});

/** Sends POST /auth/v1/register. Text is sent unchanged, any other body as JSON. */
export function register(serviceUrl: string, token: string, body: unknown): Promise<ParsedResponse> {
  return send(`${serviceUrl}${REGISTER}`, {
    method: 'POST',
    headers: { ...bearer(token), 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

export const me = (serviceUrl: string, token: string) =>
  send(`${serviceUrl}${ME}`, { headers: bearer(token) });

export interface WebhookSigning {
  readonly secret?: string;
  readonly id?: string;
  readonly timestamp?: string;
}

/**
 * Returns the headers of a webhook request. The signature covers the exact bytes of `body`. The computation does not share code
 * with the signature check in lib/.
 */
export function signatureHeaders(body: string, signing: WebhookSigning = {}): Record<string, string> {
  const { secret = SIGNING_SECRET, id = `msg_${randomUUID()}` } = signing;
  const timestamp = signing.timestamp ?? String(now());
  const signature = createHmac('sha256', Buffer.from(secret.replace(/^whsec_/, ''), 'base64'))
    .update(`${id}.${timestamp}.`)
    .update(body)
    .digest('base64');
  return {
    'svix-id': id,
    'svix-timestamp': timestamp,
    'svix-signature': `v1,${signature}`,
  };
}

/** Sends a body to the webhook with the given headers. By default, the headers contain a valid signature. */
export function deliver(
  serviceUrl: string,
  body: string,
  headers: Record<string, string> = signatureHeaders(body),
): Promise<ParsedResponse> {
  return send(`${serviceUrl}${HOOK}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });
}

/** Returns a `user.created` event in the format of the provider. */
export const userCreated = (id: unknown) =>
  JSON.stringify({ data: { id, object: 'user' }, object: 'event', type: 'user.created' });
