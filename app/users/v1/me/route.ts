import { guard } from '#lib/guard';
import { json } from '#lib/http/route';

/** GET /users/v1/me: the caller's authenticated context, which contains both ids (docs/contract.md, 2.2 and 4.3). */
export const GET = guard((_request, context) => json(context), '/users/v1/me');
