import { guard } from '#lib/guard';
import { json } from '#lib/http/route';

/** GET /users/v1/me: the authenticated context of the caller (contract 2.2, 4.3). */
export const GET = guard((_request, context) => json(context), '/users/v1/me');
