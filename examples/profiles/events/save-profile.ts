import * as z from 'zod/mini';
import { IdentityProviderUserId } from '#lib/api/schemas';
import { defineEvent, type EventContext } from '#lib/events';

const optionalText = z.nullish(z.string());
const User = z.object({
  id: IdentityProviderUserId,
  updated_at: z.int(),
  first_name: optionalText,
  last_name: optionalText,
  image_url: optionalText,
  primary_email_address_id: optionalText,
  email_addresses: z.array(z.object({ id: z.string(), email_address: z.string() })),
});

const Found = z.array(z.object({ id: z.nullable(z.guid()) }));

/**
 * Returns the internal id of a user, also by a previous id. Returns null for a forgotten user and for an expired previous id.
 * Throws for a user that is not linked yet, so that the provider delivers the event again.
 */
async function findUserId(transaction: EventContext['transaction'], id: string): Promise<string | null> {
  const links = Found.parse(
    await transaction.$queryRaw`SELECT id FROM public.users WHERE identity_provider_user_id = ${id}
      UNION ALL SELECT internal_id FROM public.previous_links('user', ARRAY[${id}::text])
      UNION ALL SELECT NULL WHERE public.forgotten_until('user', ${id}, NULL) IS NOT NULL
      ORDER BY id NULLS LAST`,
  );
  const [link] = links;
  if (link === undefined) throw new Error('The user is not linked yet');
  return link.id;
}

/** Stores the profile of a user, unless a newer one is stored. */
export const saveProfile = defineEvent(User, async (user, { transaction, claimNewest }) => {
  const { first_name = null, last_name = null, image_url = null, primary_email_address_id: primary } = user;
  const userId = await findUserId(transaction, user.id);
  if (userId === null || !(await claimNewest(userId, user.updated_at))) return;
  const email = user.email_addresses.find(({ id }) => id === primary)?.email_address ?? null;
  await transaction.$executeRaw`
    INSERT INTO public.profiles (user_id, email, first_name, last_name, image_url)
    VALUES (${userId}::uuid, ${email}, ${first_name}, ${last_name}, ${image_url})
    ON CONFLICT (user_id) DO UPDATE SET email = EXCLUDED.email, first_name = EXCLUDED.first_name,
      last_name = EXCLUDED.last_name, image_url = EXCLUDED.image_url`;
});
