import { guard } from '#lib/guard';
import { json } from '#lib/http/route';

/**
 * GET /users/v1/me: the caller's authenticated context (docs/contract.md, 2.2 and 4.3). It contains the internal id and the
 * identity provider's id.
 */
export const GET = guard((_request, context) => json(context), '/users/v1/me');
