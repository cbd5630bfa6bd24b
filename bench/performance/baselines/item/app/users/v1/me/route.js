import { guard } from '../../../../lib/identity-link/guard';

export const GET = guard((_request, user) => Response.json(user));
