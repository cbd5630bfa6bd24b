import * as z from 'zod/mini';
import { text } from '#lib/api/text';
import { defineEvent } from '#lib/events';
import type { EventHandlers } from '#lib/webhook';

// Event handlers of an example application that stores the first name of each user in a table `profiles`.

const User = z.object({ id: text('id', 255), first_name: z.nullable(z.string()), updated_at: z.int() });

const saveProfile = defineEvent(User, async (user, { transaction, isNewest }) => {
  if (!(await isNewest(user.id, user.updated_at))) return;
  // Throws if the table `users` has no row of the user yet. The provider repeats a failed delivery. The repeated delivery
  // succeeds once `user.created` has created the row.
  const { id } = await transaction.user.findUniqueOrThrow({ where: { identityProviderUserId: user.id } });
  await transaction.$executeRaw`
    INSERT INTO profiles (user_id, first_name) VALUES (${id}::uuid, ${user.first_name})
    ON CONFLICT (user_id) DO UPDATE SET first_name = EXCLUDED.first_name`;
});

const deleteProfile = defineEvent(
  z.object({ id: text('id', 255) }),
  async (user, { transaction, isNewest }) => {
    if (!(await isNewest(user.id))) return;
    await transaction.$executeRaw`
    DELETE FROM profiles USING users WHERE user_id = users.id AND identity_provider_user_id = ${user.id}`;
  },
);

export const events: EventHandlers = {
  'user.created': saveProfile,
  'user.updated': saveProfile,
  'user.deleted': deleteProfile,
};
