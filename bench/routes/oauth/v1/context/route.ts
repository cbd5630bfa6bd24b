import { guardOAuth } from '#lib/guard-oauth';
import { json } from '#lib/http/route';

/** GET /oauth/v1/context: 200 with the context of the access token. */
export const GET = guardOAuth((_request, context) => json(context), { scopes: ['read'] });
