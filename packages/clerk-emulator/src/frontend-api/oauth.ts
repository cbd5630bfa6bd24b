import { createHash } from 'node:crypto';
import type { Hono } from 'hono';
import { z } from 'zod';
import { type ApiRequest, type ApiResponse, isLoopback, parse, respond, serve } from '../http';
import { activeSession, issueOAuthToken, requireUser } from '../instance/accounts';
import type { OAuthClient, OAuthGrant, User } from '../instance/data';
import { ApiError } from '../instance/error';
import { newId, newRow, randomText } from '../instance/ids';
import { type Instance, isSecretKey } from '../instance/instance';
import { AVATAR } from '../instance/resources';
import { DAY_SECONDS, idToken } from '../instance/tokens';
import { authorize, oauthError, Resource } from './oauth-consent';

type Token = OAuthGrant['tokens'][number];

/** The scopes of Clerk, each with the claims that a client gets about the user. */
const SCOPES = new Map<string, (user: User) => object>([
  ['openid', () => ({})],
  ['profile', (user) => ({ given_name: user.firstName, family_name: user.lastName, picture: AVATAR })],
  ['email', ({ email }) => ({ email, email_verified: email !== null })],
  [
    'public_metadata',
    (user) => ({ public_metadata: user.publicMetadata, unsafe_metadata: user.unsafeMetadata }),
  ],
  ['private_metadata', (user) => ({ private_metadata: user.privateMetadata })],
  ['offline_access', () => ({})],
]);

/** An address of the client. Schemes other than http and https belong to native apps. */
const RedirectUri = z
  .url({ abort: true })
  .regex(/^[^#]*$/)
  .refine((uri) => {
    const { protocol } = new URL(uri);
    return protocol === 'http:'
      ? isLoopback(uri)
      : !/^(?:about|blob|data|file|javascript|vbscript):$/.test(protocol);
  }, 'http is only for this machine');

/** The fields of a registration that are used (RFC 7591, 2). Invalid optional fields are replaced. */
const Registration = z.object({
  redirect_uris: z.array(RedirectUri).min(1),
  client_name: z.string().min(1).max(200).catch('OAuth client'),
  token_endpoint_auth_method: z.enum(['client_secret_basic', 'none']).catch('client_secret_basic'),
  // At Clerk, a client may request only the scopes of its registration. These are the default ones.
  scope: z.string().catch('profile email'),
});

/** The fields of a token request, and those of each grant type (RFC 6749, 4.1.3 and 6; RFC 7636, 4.5). */
const TokenRequest = z.object({
  grant_type: z.enum(['authorization_code', 'refresh_token']),
  resource: Resource,
});
const CodeRequest = z.object({ code: z.string(), redirect_uri: z.string(), code_verifier: z.string() });
const RefreshRequest = z.object({ refresh_token: z.string(), scope: z.string().optional() });

/** Serves Clerk's authorization server. The consent page is part of the account portal. */
export function authorizationServer(instance: Instance): Hono {
  return serve({
    'GET /.well-known/oauth-authorization-server': metadata,
    'GET /.well-known/openid-configuration': metadata,
    'GET /oauth/authorize': ({ url }) => authorize(instance, url),
    'POST /oauth/register': (request) => register(instance, request),
    'POST /oauth/token': (request) => exchange(instance, request),
    'GET /oauth/userinfo': (request) => userInfo(instance, request),
  }).onError((error) => {
    if (!(error instanceof ApiError)) throw error;
    const status = error.parameter === undefined ? error.status : 400;
    const scheme = error.code === 'invalid_client' ? 'Basic' : 'Bearer';
    const headers = status === 401 ? { 'www-authenticate': `${scheme} error="${error.code}"` } : {};
    return respond({ status, headers, body: oauthError(error) });
  });
}

/** Returns the metadata of the server. A client rejects an issuer other than the origin that it requests (RFC 8414, 3.3). */
function metadata({ url: { origin } }: ApiRequest): ApiResponse {
  return {
    body: {
      issuer: origin,
      authorization_endpoint: `${origin}/oauth/authorize`,
      token_endpoint: `${origin}/oauth/token`,
      registration_endpoint: `${origin}/oauth/register`,
      userinfo_endpoint: `${origin}/oauth/userinfo`,
      jwks_uri: `${origin}/.well-known/jwks.json`,
      response_types_supported: ['code'],
      grant_types_supported: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'none'],
      scopes_supported: [...SCOPES.keys()],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
    },
  };
}

/** Registers a client (RFC 7591, 3). Throws a 400 if a redirect URI is invalid. */
function register(instance: Instance, { body }: ApiRequest): ApiResponse {
  const fields = parse(Registration, body);
  const client = instance.store.oauthClients.put({
    ...newRow(instance, 'oa'),
    id: randomText(16),
    name: fields.client_name,
    redirectUris: fields.redirect_uris,
    scopes: fields.scope.split(' ').filter((scope) => SCOPES.has(scope)),
    secret: fields.token_endpoint_auth_method === 'none' ? null : randomText(32),
  });
  return {
    status: 201,
    body: {
      ...fields,
      client_id: client.id,
      client_id_issued_at: Math.floor(client.createdAt / 1000),
      ...(client.secret !== null && { client_secret: client.secret, client_secret_expires_at: 0 }),
      scope: client.scopes.join(' '),
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
    },
  };
}

/** Returns the client that sends a token request (RFC 6749, 2.3). Throws a 401 if it is unknown or its secret is wrong. */
function requireClient({ store }: Instance, { headers, body }: ApiRequest): OAuthClient {
  const [, basic] = /^Basic (.+)$/i.exec(headers.get('authorization') ?? '') ?? [];
  const { client_id: named } = body;
  const [id = '', secret = ''] = basic ? Buffer.from(basic, 'base64').toString().split(':') : [String(named)];
  const client = named === undefined || named === id ? store.oauthClients.get(id) : undefined;
  if (client && isSecretKey({ secretKey: client.secret ?? '' }, secret)) return client;
  throw new ApiError(401, 'invalid_client', 'The client is unknown, or its secret is wrong.');
}

/** Returns a code or token with its grant, or undefined if it is unknown or expired or its grant has ended. */
function findToken({ store, clock }: Instance, kind: Token['kind'], secret: string) {
  const isFound = (token: Token) =>
    token.kind === kind && token.secret === secret && (token.expireAt ?? Infinity) > clock.now();
  const grant = store.oauthGrants.find(({ tokens }) => tokens.some(isFound));
  const token = grant?.tokens.find(isFound);
  return grant && token && { grant, token };
}

/**
 * Validates a token request. Returns its code or refresh token, with the grant and the audience. A second use ends the grant,
 * because one of the two requests may come from a thief (RFC 9700, 4.14.2).
 */
function redeem(instance: Instance, request: ApiRequest) {
  const client = requireClient(instance, request);
  const { grant_type, resource } = parse(TokenRequest, request.body);
  const isCode = grant_type === 'authorization_code';
  const proof = isCode ? parse(CodeRequest, request.body) : undefined;
  const refresh = isCode ? undefined : parse(RefreshRequest, request.body);
  const found = proof
    ? findToken(instance, 'code', proof.code)
    : findToken(instance, 'refresh', refresh?.refresh_token ?? '');
  if (found?.grant.clientId !== client.id) throw invalidGrant('is invalid or has expired');
  const { id, sessionId, request: granted } = found.grant;
  if (found.token.used) instance.store.oauthGrants.delete(id);
  if (found.token.used) throw invalidGrant('was used before');
  if (!activeSession(instance, sessionId)) throw invalidGrant('belongs to a session that has ended');
  if (proof && s256(proof.code_verifier) !== granted.code_challenge)
    throw invalidGrant('has another code_verifier');
  if (proof && proof.redirect_uri !== granted.redirect_uri) throw invalidGrant('has another redirect_uri');
  if (resource !== undefined && resource !== (granted.resource ?? resource))
    throw new ApiError(400, 'invalid_target', 'The user has consented to another resource.');
  const scopes = refresh?.scope?.split(' ') ?? granted.scope;
  if (!scopes.every((scope) => granted.scope.includes(scope)))
    throw new ApiError(400, 'invalid_scope', 'The user has not consented to this scope.');
  return { ...found, scopes, audience: resource ?? granted.resource };
}

const s256 = (verifier: string) => createHash('sha256').update(verifier).digest('base64url');

const invalidGrant = (problem: string) =>
  new ApiError(400, 'invalid_grant', `The code or refresh token ${problem}.`);

/** Exchanges a code or a refresh token for new tokens (RFC 6749, 5.1). */
function exchange(instance: Instance, request: ApiRequest): ApiResponse {
  const { grant, token: used, scopes, audience } = redeem(instance, request);
  const { userId, clientId } = grant;
  const { nonce } = grant.request;
  const { accessTokenFormat, accessTokenSeconds: seconds } = instance.oauth;
  const issuer = request.url.origin;
  const now = instance.clock.now();
  const accessToken =
    accessTokenFormat === 'opaque'
      ? newId('oat')
      : issueOAuthToken(instance, { issuer, userId }, { audience, scopes, clientId });
  const access: Token = { kind: 'access', secret: accessToken, used: false, expireAt: now + seconds * 1000 };
  const refresh: Token = { kind: 'refresh', secret: newId('ort'), used: false };
  const isOffline = grant.request.scope.includes('offline_access');
  const tokens = grant.tokens.map((token) => (token === used ? { ...token, used: true } : token));
  instance.store.oauthGrants.put({
    ...grant,
    request: { ...grant.request, resource: audience },
    tokens: [...tokens, access, ...(isOffline ? [refresh] : [])],
  });
  const claims = { ...userClaims(instance, grant), aud: clientId, nonce };
  const id = idToken(instance.signingKey, { issuer, now, seconds: DAY_SECONDS }, claims);
  return {
    body: {
      access_token: accessToken,
      token_type: 'bearer',
      expires_in: seconds,
      scope: scopes.join(' '),
      ...(isOffline && { refresh_token: refresh.secret }),
      ...(scopes.includes('openid') && { id_token: id }),
    },
  };
}

/** Returns the claims about the user of an access token (OpenID Connect Core, 5.3). Throws a 401 if the token is not valid. */
function userInfo(instance: Instance, { headers }: ApiRequest): ApiResponse {
  const secret = headers.get('authorization')?.replace(/^Bearer /i, '') ?? '';
  const found = findToken(instance, 'access', secret);
  if (found) return { body: { user_id: found.grant.userId, ...userClaims(instance, found.grant) } };
  throw new ApiError(401, 'invalid_token', 'The access token is invalid or has expired.');
}

function userClaims(instance: Instance, { userId, request }: OAuthGrant) {
  const user = requireUser(instance, userId);
  return Object.assign({ sub: userId }, ...request.scope.map((scope) => SCOPES.get(scope)?.(user)));
}
