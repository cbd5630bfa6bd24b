import { guardTenant } from '#lib/guard-tenant';
import { json } from '#lib/http/route';

/** GET /tenants/v1/context: 200 with the context of the tenant. */
export const GET = guardTenant((_request, context) => json(context));
