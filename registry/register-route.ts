import { RegisterUserRequest } from '../../../../lib/identity-link/api/input';
import { guard } from '../../../../lib/identity-link/guard';
import { readJson } from '../../../../lib/identity-link/http/body';
import { json } from '../../../../lib/identity-link/http/route';
import { registerByIdentityProviderUserId } from '../../../../lib/identity-link/register';

/** POST /auth/v1/register: 201 if this call created the link, 200 if it existed. */
export const POST = guard(async (request) => {
  const { identityProviderUserId } = await readJson(request, RegisterUserRequest);
  const registration = await registerByIdentityProviderUserId(identityProviderUserId);
  return json({ userId: registration?.userId, identityProviderUserId }, registration?.created ? 201 : 200);
});
