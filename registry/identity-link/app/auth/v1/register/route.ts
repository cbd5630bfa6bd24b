import * as z from 'zod/mini';
import { guard } from '../../../../lib/identity-link/guard';
import { readJson, text } from '../../../../lib/identity-link/http';
import { registerByIdentityProviderUserId } from '../../../../lib/identity-link/link';

const Body = z.object({ identityProviderUserId: text('identityProviderUserId', 255) });

/** POST /auth/v1/register: 201 if this call created the link, 200 if it existed. */
export const POST = guard(async (request) => {
  const { identityProviderUserId } = await readJson(request, Body);
  const { userId, created } = await registerByIdentityProviderUserId(identityProviderUserId);
  return Response.json({ userId, identityProviderUserId }, { status: created ? 201 : 200 });
});
