import { environment } from '#lib/base/env';
import { metadataUrl } from '#lib/guard-oauth';
import { HttpError } from '#lib/http/error';
import { route } from '#lib/http/route';

/** GET /.well-known/oauth-protected-resource: which server issues access tokens for this service (RFC 9728). */
export const GET = route(({ nextUrl: { pathname } }) => {
  const { IDP_OAUTH_AUDIENCE: resource, IDP_PUBLISHABLE_KEY } = environment();
  const paths = resource ? ['/.well-known/oauth-protected-resource', metadataUrl(resource).pathname] : [];
  if (!paths.includes(pathname)) throw new HttpError(404, 'Not found');
  const servers = [IDP_PUBLISHABLE_KEY.frontendApi];
  const metadata = { resource, authorization_servers: servers, bearer_methods_supported: ['header'] };
  return Response.json(metadata, { headers: { 'access-control-allow-origin': '*' } });
});
