import { RegisterUserRequest } from '../../../../lib/identity-link/api/input';
import { guard } from '../../../../lib/identity-link/guard';
import { readJson } from '../../../../lib/identity-link/http/body';
import { HttpError } from '../../../../lib/identity-link/http/error';
import { json } from '../../../../lib/identity-link/http/route';
import { registerByIdentityProviderUserId } from '../../../../lib/identity-link/register';

/** POST /auth/v1/register: 201 if this call created the link, 200 if it existed, 409 for a user whom Clerk does not have. */
export const POST = guard(async (request) => {
  const { identityProviderUserId } = await readJson(request, RegisterUserRequest);
  const registration = await registerByIdentityProviderUserId(identityProviderUserId);
  if (registration === undefined) throw new HttpError(409, 'User is forgotten');
  const { userId, created } = registration;
  return json({ userId, identityProviderUserId }, created ? 201 : 200);
});
