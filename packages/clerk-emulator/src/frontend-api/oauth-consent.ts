import { z } from 'zod';
import { type ApiResponse, parse, readParameters } from '../http';
import { ApiError } from '../instance/api-error';
import type { OAuthClient } from '../instance/data';
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

const words = (text: string) => [...new Set(text.split(' ').filter(Boolean))];

const Scope = ({ scopes }: OAuthClient) =>
  z
    .string()
    .default(scopes.join(' '))
    .transform(words)
    .pipe(z.array(z.enum(scopes)));

/** Schema of an authorization request (RFC 6749, 4.1.1). Only a public client needs PKCE (RFC 7636, 4.3). */
function authorizationRequest(client: OAuthClient) {
  const Challenge = z.string().regex(/^[\w-]{43}$/);
  const Method = z.literal('S256');
  const isPublic = client.secret === null;
  return z
    .object({
      response_type: z.literal('code'),
      redirect_uri: z.string(),
      code_challenge: isPublic ? Challenge : Challenge.optional(),
      code_challenge_method: isPublic ? Method : Method.optional(),
      scope: Scope(client),
      state: z.string().min(8).optional(),
      prompt: z.string().optional(),
      // Clerk has `form_post`, too. The codes of the emulator are only in a query.
      response_mode: z.literal('query').optional(),
      resource: Resource,
      nonce: z.string().optional(),
    })
    .refine(({ code_challenge, code_challenge_method: method }) => !code_challenge === !method, {
      path: ['code_challenge_method'],
    })
    .refine(({ code_challenge, state }) => code_challenge ?? state, { path: ['state'] });
}

/** Returns the parameters, without empty ones. Throws a 400 for a repeated one (RFC 6749, 3.1), unless it is `resource`. */
export function oauthParameters(all: Parameters): Parameters {
  const given = Object.entries(all).filter(([, value]) => value !== '');
  const doubled = given.find(([name, value]) => typeof value !== 'string' && name !== 'resource');
  if (doubled === undefined) return Object.fromEntries(given);
  throw new ApiError(400, 'invalid_request', `The parameter ${doubled[0]} occurs more than once.`);
}

/** Returns a redirect to a path of the emulator that has the parameters in its query. */
export function redirectWith(path: string, parameters: Parameters): ApiResponse {
  const query = new URLSearchParams(Object.entries(parameters).map(([name, value]) => [name, String(value)]));
  return { status: 303, headers: { location: `${path}?${query}` } };
}

/**
 * Redirects the browser to the consent page, or after it to the client with the code that `accept` returns. An error leads to
 * the client only after the sign-in or with `prompt=none`, because any site can register itself (RFC 9700, 4.11.2).
 */
export function authorize(
  instance: Instance,
  { origin: iss }: URL,
  request: Parameters,
  accept?: (fields: z.output<ReturnType<typeof authorizationRequest>>) => string,
): ApiResponse {
  const parameters = oauthParameters(request);
  const client = requireClient(instance, parameters);
  const { redirect_uri = client.redirectUris[0], state, prompt } = parameters;
  const toClient = (result: Readonly<Record<string, string>>): ApiResponse => {
    const target = new URL(String(redirect_uri));
    const fields = { ...result, ...(typeof state === 'string' && { state }), iss };
    for (const [name, value] of Object.entries(fields)) target.searchParams.set(name, value);
    return { status: 303, headers: { location: target.href } };
  };
  try {
    const fields = parse(authorizationRequest(client), { ...parameters, redirect_uri });
    if (accept) return toClient({ code: accept(fields) });
    if (prompt === 'none')
      throw new ApiError(400, 'interaction_required', 'The user must sign in and consent.');
    return redirectWith('/oauth-consent', parameters);
  } catch (error) {
    if (error instanceof ApiError && (accept || prompt === 'none')) return toClient(oauthError(error));
    throw error;
  }
}

/** Returns what the consent page shows about the request in its address. Throws a 4xx if the request is invalid. */
export function consentInfo(instance: Instance, { id, url }: BrowserRequest): Record<string, unknown> {
  const parameters = readParameters(url.searchParams);
  const client = requireClient(instance, { ...parameters, client_id: id });
  const { scope } = parse(z.object({ scope: Scope(client) }), oauthParameters(parameters));
  return {
    oauth_application_name: client.name,
    client_id: id,
    // The emulator has no list of public suffixes. Without the domain, the page shows the host of the redirect URI.
    redirect_domain: null,
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

/** Returns an error in the form of RFC 6749. The code depends on the field, and is `other` for other and missing fields. */
export function oauthError({ code, message, parameter = '' }: ApiError, other = 'invalid_request') {
  const isInvalid = /^(form_param|request_body)_/.test(code);
  const byField = code === 'form_param_missing' ? other : (CODES.get(parameter) ?? other);
  // The description must not have other characters (RFC 6749, 5.2).
  const error_description = message.replace(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, "'");
  return { error: isInvalid ? byField : code, error_description };
}

/** Returns the client of a request. Throws a 400 unless the redirect URI is registered, or missing and the only one. */
function requireClient({ store }: Instance, { client_id, redirect_uri }: Parameters): OAuthClient {
  const client = store.oauthClients.get(String(client_id));
  if (client === undefined) throw new ApiError(400, 'invalid_client', 'The client_id is unknown.');
  // Ignores the port of an address on this machine, because a native app chooses it at run time (RFC 8252, 7.3).
  const comparable = (uri: unknown) => String(uri).replace(/^(http:\/\/[^/?#@]*?):\d+(?=[/?]|$)/, '$1');
  if (redirect_uri === undefined && client.redirectUris.length === 1) return client;
  const isRegistered = client.redirectUris.some((uri) => comparable(uri) === comparable(redirect_uri));
  if (isRegistered && URL.canParse(String(redirect_uri))) return client;
  throw new ApiError(400, 'invalid_request', 'The client has not registered this redirect_uri.');
}
