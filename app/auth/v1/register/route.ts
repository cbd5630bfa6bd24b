import { RegisterUserRequest, type UserLink } from '#lib/api/schemas';
import { guard } from '#lib/guard';
import { readJson } from '#lib/http/body';
import { json } from '#lib/http/route';
import { addLogFields } from '#lib/log';
import { registerByIdentityProviderUserId } from '#lib/register';

/** POST /auth/v1/register: 201 if this call created the user, 200 if the user existed (contract 4.1). */
export const POST = guard(async (request) => {
  const { identityProviderUserId } = await readJson(request, RegisterUserRequest);
  const { userId, created } = await registerByIdentityProviderUserId(identityProviderUserId);
  addLogFields({ registered: created ? 'created' : 'existing' });
  return json({ userId, identityProviderUserId } satisfies UserLink, created ? 201 : 200);
}, '/auth/v1/register');
