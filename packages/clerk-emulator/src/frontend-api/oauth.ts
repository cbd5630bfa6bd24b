import { createHash } from 'node:crypto';
import { Hono } from 'hono';
import { z } from 'zod';
import { type ApiRequest, type ApiResponse, errorBody, parse, readParameters, respond, serve } from '../http';
import { activeSession, requireUser } from '../instance/accounts';
import { ApiError } from '../instance/api-error';
import { DAY_SECONDS } from '../instance/clock';
import type { OAuthClient, OAuthGrant } from '../instance/data';
import { newId } from '../instance/ids';
import { type Instance, isSecretKey } from '../instance/instance';
import { issueClaims, issueOAuthToken } from '../instance/issued-tokens';
import { signJwt } from '../instance/jwt';
import { userImage } from '../instance/resources';
import { SCOPES } from '../instance/settings';
import { loadClient, register } from './oauth-clients';
import { authorize, oauthError, oauthParameters, Resource, redirectWith } from './oauth-consent';

type Token = OAuthGrant['tokens'][number];

const Verifier = z.string().regex(/^[\w.~-]{43,128}$/);
/** The fields of a token request with a code and with a refresh token (RFC 6749, 4.1.3 and 6; RFC 7636, 4.1 and 4.5). */
const TokenRequest = z.discriminatedUnion('grant_type', [
  z.object({
    grant_type: z.literal('authorization_code'),
    code: z.string(),
    redirect_uri: z.string(),
    code_verifier: Verifier.optional(),
    resource: Resource,
  }),
  z.object({
    grant_type: z.literal('refresh_token'),
    refresh_token: z.string(),
    scope: z.string().optional(),
    resource: Resource,
  }),
]);
/** `token_type_hint` is not necessary to find a token (RFC 7009, 2.1). */
const TokenSecret = z.object({ token: z.string() });

/** Time after its use in which a refresh token is accepted again, because a client may refresh several times in parallel. */
const REFRESH_GRACE_MILLISECONDS = 10_000;

/** Serves Clerk's authorization server. The consent page is part of the account portal. */
export function authorizationServer(instance: Instance): Hono {
  const app = new Hono();
  app.use('/oauth/authorize', async ({ req }, next) => {
    await loadClient(instance, req.query('client_id') ?? '');
    return next();
  });
  app.onError((error, { req }) => {
    if (!(error instanceof ApiError)) throw error;
    const status = error.parameter === undefined ? error.status : 400;
    const scheme = error.code === 'invalid_client' ? 'Basic' : 'Bearer';
    const challenge = `${scheme} realm="${instance.publishableKey.issuer}", error="${error.code}"`;
    const headers = status === 401 ? { 'www-authenticate': challenge } : {};
    const other = req.path === '/oauth/register' ? 'invalid_client_metadata' : 'invalid_request';
    // Clerk documents `errors` for these operations. Clients of `authorize` read the fields of OAuth, too.
    const own = /^\/oauth\/(userinfo|authorize)$/.test(req.path) ? errorBody(error) : {};
    const body = req.path === '/oauth/userinfo' ? own : { ...own, ...oauthError(error, other) };
    return respond({ status, headers, body });
  });
  const form = (handler: (request: ApiRequest) => ApiResponse) => (request: ApiRequest) => {
    const type = request.headers.get('content-type') ?? '';
    if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(type))
      throw new ApiError(400, 'invalid_request', 'The body is not application/x-www-form-urlencoded.');
    return handler({ ...request, body: oauthParameters(request.body) });
  };
  return app.route(
    '/',
    serve({
      'GET /.well-known/oauth-authorization-server': ({ url: { origin } }) => ({
        body: {
          ...metadata(origin),
          registration_endpoint: `${origin}/oauth/register`,
          // Clients that prefer metadata documents do not register themselves if the server announces this.
          client_id_metadata_document_supported: instance.settings.clientMetadataDocuments || undefined,
        },
      }),
      'GET /.well-known/openid-configuration': ({ url: { origin } }) => ({
        body: {
          ...metadata(origin),
          introspection_endpoint: `${origin}/oauth/token_info`,
          userinfo_endpoint: `${origin}/oauth/userinfo`,
          response_modes_supported: ['query'],
          backchannel_logout_supported: false,
          frontchannel_logout_supported: false,
        },
      }),
      'GET /oauth/authorize': ({ url }) => authorize(instance, url, readParameters(url.searchParams)),
      'POST /oauth/authorize': ({ body }) => redirectWith('/oauth/authorize', oauthParameters(body)),
      'POST /oauth/register': (request) => register(instance, request),
      'POST /oauth/token': form((request) => exchange(instance, request)),
      'POST /oauth/token_info': form((request) => tokenInfo(instance, request)),
      'POST /oauth/token/revoke': form((request) => revoke(instance, request)),
      'GET /oauth/userinfo': (request) => userInfo(instance, request),
      'POST /oauth/userinfo': (request) => userInfo(instance, request),
    }),
  );
}

const CLAIM_NAMES =
  'aud email email_verified exp family_name given_name iat iss name nonce picture preferred_username sub';

/** Returns the metadata of the server. A client rejects an issuer other than the origin that it requests (RFC 8414, 3.3). */
function metadata(origin: string) {
  return {
    issuer: origin,
    authorization_endpoint: `${origin}/oauth/authorize`,
    token_endpoint: `${origin}/oauth/token`,
    revocation_endpoint: `${origin}/oauth/token/revoke`,
    jwks_uri: `${origin}/.well-known/jwks.json`,
    response_types_supported: ['code'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'none'],
    scopes_supported: SCOPES,
    claims_supported: CLAIM_NAMES.split(' '),
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
    code_challenge_methods_supported: ['S256'],
    // Not in Clerk's document. A client verifies the `iss` of an authorization response only if the server announces it.
    authorization_response_iss_parameter_supported: true,
  };
}

/** Returns the client that sends a token request (RFC 6749, 2.3). Throws a 401 if it is unknown or its secret is wrong. */
function requireClient({ store }: Instance, { headers, body }: ApiRequest): OAuthClient {
  const [, basic] = /^Basic (.+)$/i.exec(headers.get('authorization') ?? '') ?? [];
  const { client_id: named, client_secret: sent = '' } = body;
  const [id = '', secret = ''] = basic
    ? Buffer.from(basic, 'base64').toString().split(':')
    : [String(named), String(sent)];
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
 * Validates a token request. Returns its code or refresh token, with the grant and the audience. A second use, of a refresh token
 * after a few seconds, ends the grant, because one of the two requests may come from a thief (RFC 9700, 4.14.2).
 */
function redeem(instance: Instance, request: ApiRequest) {
  const client = requireClient(instance, request);
  const { resource, ...input } = parse(TokenRequest, request.body);
  const isCode = input.grant_type === 'authorization_code';
  const found = isCode
    ? findToken(instance, 'code', input.code)
    : findToken(instance, 'refresh', input.refresh_token);
  if (found?.grant.clientId !== client.id) throw invalidGrant('is invalid or has expired');
  const { id, sessionId, request: granted } = found.grant;
  const { used, usedAt } = found.token;
  const isParallel = !isCode && (usedAt ?? 0) + REFRESH_GRACE_MILLISECONDS > instance.clock.now();
  if (used && !isParallel) {
    instance.store.oauthGrants.delete(id);
    throw invalidGrant('was used before');
  }
  if (!activeSession(instance, sessionId)) throw invalidGrant('belongs to a session that has ended');
  if (isCode && (input.code_verifier && s256(input.code_verifier)) !== granted.code_challenge)
    throw invalidGrant('has another code_verifier');
  if (isCode && input.redirect_uri !== granted.redirect_uri) throw invalidGrant('has another redirect_uri');
  if (resource !== undefined && resource !== (granted.resource ?? resource))
    throw new ApiError(400, 'invalid_target', 'The user has consented to another resource.');
  const scopes = (isCode ? undefined : input.scope?.split(' ')) ?? granted.scope;
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
  const expireAt = now + seconds * 1000;
  const access: Token = { kind: 'access', secret: accessToken, used: false, scopes, expireAt };
  const refresh: Token = { kind: 'refresh', secret: newId('ort'), used: false };
  const isOffline = grant.request.scope.includes('offline_access');
  const tokens = grant.tokens.map((token) =>
    token === used ? { ...token, used: true, usedAt: now } : token,
  );
  instance.store.oauthGrants.put({
    ...grant,
    request: { ...grant.request, resource: audience },
    tokens: [...tokens, access, ...(isOffline ? [refresh] : [])],
  });
  const issued = issueClaims(issuer, now, DAY_SECONDS);
  const claims = { ...issued, ...userClaims(instance, grant, scopes), aud: clientId, nonce };
  return {
    body: {
      access_token: accessToken,
      token_type: 'Bearer',
      expires_in: seconds,
      scope: scopes.join(' '),
      ...(isOffline && { refresh_token: refresh.secret }),
      ...(scopes.includes('openid') && { id_token: signJwt(instance.signingKey, claims) }),
    },
  };
}

/** Returns a token that can be used now. Without `offline_access`, it ends with the session of the user. */
function findActive(instance: Instance, kind: Token['kind'], secret: string) {
  const found = findToken(instance, kind, secret);
  if (found === undefined || found.token.used) return undefined;
  const { request, sessionId } = found.grant;
  const isOffline = kind === 'access' && request.scope.includes('offline_access');
  return isOffline || activeSession(instance, sessionId) ? found : undefined;
}

/** Returns whether an access or refresh token of the client is active (RFC 7662, 2.2). */
function tokenInfo(instance: Instance, request: ApiRequest): ApiResponse {
  const { id: client_id } = requireClient(instance, request);
  const { token } = parse(TokenSecret, request.body);
  const found = findActive(instance, 'access', token) ?? findActive(instance, 'refresh', token);
  if (found?.grant.clientId !== client_id) return { body: { active: false } };
  const { userId: sub, request: granted } = found.grant;
  return { body: { active: true, client_id, sub, scope: (found.token.scopes ?? granted.scope).join(' ') } };
}

/** Revokes the grant of a token of the client (RFC 7009, 2.1). At Clerk, a JWT cannot be revoked. */
function revoke(instance: Instance, request: ApiRequest): ApiResponse {
  const client = requireClient(instance, request);
  const { token } = parse(TokenSecret, request.body);
  if (token.includes('.')) throw new ApiError(400, 'unsupported_token_type', 'A JWT cannot be revoked.');
  const { oauthGrants } = instance.store;
  const isOwn = ({ clientId, tokens }: OAuthGrant) =>
    clientId === client.id && tokens.some(({ secret }) => secret === token);
  const grant = oauthGrants.find(isOwn);
  if (grant) oauthGrants.delete(grant.id);
  return {};
}

/** Returns the claims about the user of an access token (OpenID Connect Core, 5.3). Throws a 401 if the token is not valid. */
function userInfo(instance: Instance, { headers }: ApiRequest): ApiResponse {
  const secret = headers.get('authorization')?.replace(/^Bearer /i, '') ?? '';
  const found = findActive(instance, 'access', secret);
  if (found === undefined)
    throw new ApiError(401, 'invalid_token', 'The access token is invalid or has expired.');
  const { grant, token } = found;
  const identity = { object: 'oauth_user_info', instance_id: instance.signingKey.kid, user_id: grant.userId };
  return { body: { ...identity, ...userClaims(instance, grant, token.scopes) } };
}

/** Returns the claims about the user that a client gets for its scopes. */
function userClaims(instance: Instance, { userId, request }: OAuthGrant, scopes = request.scope) {
  const user = requireUser(instance, userId);
  const has = (scope: string) => scopes.includes(scope);
  return {
    sub: userId,
    ...(has('profile') && {
      name: [user.firstName, user.lastName].filter(Boolean).join(' '),
      given_name: user.firstName,
      family_name: user.lastName,
      preferred_username: user.username,
      picture: userImage(user),
    }),
    ...(has('email') && { email: user.email, email_verified: user.email !== null }),
    ...(has('public_metadata') && {
      public_metadata: user.publicMetadata,
      unsafe_metadata: user.unsafeMetadata,
    }),
    ...(has('private_metadata') && { private_metadata: user.privateMetadata }),
  };
}
