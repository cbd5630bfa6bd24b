import { z } from 'zod';
import { type ApiResponse, parse, readParameters } from '../http';
import type { OAuthClient } from '../instance/data';
import { ApiError } from '../instance/error';
import { newId, newRow } from '../instance/ids';
import type { Instance } from '../instance/instance';
import { type BrowserRequest, requireSignedIn } from './browser';

type Parameters = Readonly<Record<string, unknown>>;

const CODE_LIFE = 10 * 60 * 1000;

/** Error codes of invalid fields (RFC 6749, RFC 7591, RFC 8707). */
const CODES = new Map([
  ['redirect_uris', 'invalid_redirect_uri'],
  ['response_type', 'unsupported_response_type'],
  ['grant_type', 'unsupported_grant_type'],
  ['scope', 'invalid_scope'],
  ['resource', 'invalid_target'],
]);

/** The URL of the service that a token is for (RFC 8707, 2). */
export const Resource = z.optional(z.url({ protocol: /^https?$/ }).regex(/^[^#]*$/));

/** Schema of an authorization request (RFC 6749, 4.1.1) with PKCE (RFC 7636, 4.3). */
const authorizationRequest = ({ scopes }: OAuthClient) =>
  z.object({
    response_type: z.literal('code'),
    redirect_uri: z.string(),
    code_challenge: z.string().regex(/^[\w-]{43}$/),
    code_challenge_method: z.literal('S256'),
    scope: z
      .string()
      .default(scopes.join(' '))
      .transform((text) => [...new Set(text.split(' ').filter(Boolean))])
      .pipe(z.array(z.enum(scopes))),
    resource: Resource,
    nonce: z.string().optional(),
  });

/**
 * Redirects the browser to the consent page, or after it to the client with the code that `accept` returns. An error leads to
 * the client, unless the client or its redirect URI is unknown (RFC 6749, 4.1.2.1).
 */
export function authorize(
  instance: Instance,
  { origin: iss, search, searchParams }: URL,
  parameters: Parameters = readParameters(searchParams),
  accept?: (fields: z.output<ReturnType<typeof authorizationRequest>>) => string,
): ApiResponse {
  const client = requireClient(instance, parameters);
  const { redirect_uri, state } = parameters;
  const toClient = (result: Readonly<Record<string, string>>) => {
    const target = new URL(String(redirect_uri));
    for (const [name, value] of Object.entries({ ...result, state, iss }))
      if (typeof value === 'string') target.searchParams.set(name, value);
    return { status: 303, headers: { location: target.href } };
  };
  try {
    const fields = parse(authorizationRequest(client), parameters);
    if (accept) return toClient({ code: accept(fields) });
    return { status: 303, headers: { location: `/oauth-consent${search}` } };
  } catch (error) {
    if (error instanceof ApiError) return toClient(oauthError(error));
    throw error;
  }
}

/** Returns what the consent page shows about the request in its address. Throws a 4xx if the request is invalid. */
export function consentInfo(instance: Instance, { id, url }: BrowserRequest): Record<string, unknown> {
  const parameters = readParameters(url.searchParams);
  const client = requireClient(instance, { ...parameters, client_id: id });
  const { scope } = parse(authorizationRequest(client).pick({ scope: true }), parameters);
  return {
    oauth_application_name: client.name,
    client_id: id,
    scopes: scope.map((name) => ({ scope: name, requires_consent: true })),
  };
}

/** Serves the form of the consent page, which repeats the authorization request. Throws a 403 for a form of another page. */
export function consent(instance: Instance, request: BrowserRequest): ApiResponse {
  const { id: clientId, body, url, headers } = request;
  if (headers.get('origin') !== url.origin)
    throw new ApiError(403, 'origin_invalid', 'Only the consent page may send a consent.');
  const { session, user } = requireSignedIn(instance, request);
  return authorize(instance, url, { ...body, client_id: clientId }, (fields) => {
    if (body['consented'] !== 'true')
      throw new ApiError(403, 'access_denied', 'The user denied the request.');
    const code = newId('oac');
    instance.store.oauthGrants.put({
      ...newRow(instance, 'oag'),
      userId: user.id,
      clientId,
      sessionId: session.id,
      request: fields,
      tokens: [{ kind: 'code', secret: code, used: false, expireAt: instance.clock.now() + CODE_LIFE }],
    });
    return code;
  });
}

/** Returns an error in the form of RFC 6749. The code of an error of `parse` depends on the field. */
export function oauthError({ code, message, parameter }: ApiError) {
  const error = parameter === undefined ? code : (CODES.get(parameter) ?? 'invalid_request');
  return { error, error_description: message };
}

/** Returns the client of an authorization request. Throws a 400 unless the client has registered the redirect URI. */
function requireClient({ store }: Instance, { client_id, redirect_uri }: Parameters): OAuthClient {
  const client = store.oauthClients.get(String(client_id));
  if (client === undefined) throw new ApiError(400, 'invalid_client', 'The client_id is unknown.');
  // Ignores the port of an address on this machine, because a native app chooses it at run time (RFC 8252, 7.3).
  const comparable = (uri: unknown) => String(uri).replace(/^(http:\/\/[^/?#@]*?):\d+(?=[/?]|$)/, '$1');
  const isRegistered = client.redirectUris.some((uri) => comparable(uri) === comparable(redirect_uri));
  if (isRegistered && URL.canParse(String(redirect_uri))) return client;
  throw new ApiError(400, 'invalid_request', 'The client has not registered this redirect_uri.');
}
