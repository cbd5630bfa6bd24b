import { json } from '#lib/http/route';
import { protectedResource } from '#lib/protected-resource';

const resource = protectedResource('/oauth/v1/context', { scopes: ['read'] });

/** GET /oauth/v1/context: 200 with the context of the access token. */
export const GET = resource.guard((_request, context) => json(context));
