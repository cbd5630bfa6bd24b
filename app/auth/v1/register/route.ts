import { RegisterUserRequest } from '#lib/api/schemas';
import { environment } from '#lib/base/env';
import { guard } from '#lib/guard';
import { readJson } from '#lib/http/body';
import { HttpError } from '#lib/http/error';
import { addLogFields } from '#lib/http/request-log';
import { json } from '#lib/http/route';
import { outcomeOf, registerByIdentityProviderUserId } from '#lib/register';

/**
 * POST /auth/v1/register: 201 for a new user, 200 for an existing user, 409 for a forgotten user, whose link
 * an operator has deleted, and 403 for another user than the caller with REGISTER_OWN_ID_ONLY (docs/contract.md, 4.1).
 */
export const POST = guard(async (request, caller) => {
  const { identityProviderUserId } = await readJson(request, RegisterUserRequest);
  if (environment().REGISTER_OWN_ID_ONLY && identityProviderUserId !== caller.identityProviderUserId)
    throw new HttpError(403, 'Forbidden');
  const registration = await registerByIdentityProviderUserId(identityProviderUserId);
  addLogFields({ registered: outcomeOf(registration) });
  if (registration.state === 'forgotten') throw new HttpError(409, 'User is forgotten');
  const { id: userId, created } = registration;
  return json({ userId, identityProviderUserId }, created ? 201 : 200);
});
