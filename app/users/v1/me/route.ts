import { guard } from '#lib/guard';
import { json } from '#lib/http/route';

/**
 * GET /users/v1/me: returns the caller's authenticated context (docs/contract.md, 2.2 and 4.3). This object contains the
 * caller's internal user id and the caller's id at the identity provider.
 */
export const GET = guard((_request, context) => json(context));
