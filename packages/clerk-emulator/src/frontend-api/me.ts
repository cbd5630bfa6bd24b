import { z } from 'zod';
import { parse, type Routes } from '../http';
import { acceptPassword, deleteUser, endSession, endSessionsOf, updateUser } from '../instance/accounts';
import { notFound, parameterError } from '../instance/api-error';
import type { User } from '../instance/data';
import { withPrimary } from '../instance/identifiers';
import { storeImage } from '../instance/images';
import type { Instance } from '../instance/instance';
import { mergeMetadata } from '../instance/metadata';
import { deletedResource } from '../instance/organizations';
import { requirePassword } from '../instance/passwords';
import { publicUserResource } from '../instance/resources';
import type { UserRequest } from './browser';
import { browserMemberships, currentSession } from './session';
import { requireSettings, UnsafeMetadata } from './sign-up';

/** An empty field removes the name. Without effect: `primary_web3_wallet_id`. Users do not sign in with wallets. */
const Profile = z.object({
  first_name: z.string().optional(),
  last_name: z.string().optional(),
  username: z.string().optional(),
  primary_email_address_id: z.string().optional(),
  primary_phone_number_id: z.string().optional(),
  unsafe_metadata: UnsafeMetadata.optional(),
});
const MetadataPatch = z.object({ unsafe_metadata: UnsafeMetadata });
/** From this API version on, `PATCH /v1/me` rejects metadata. */
const FIRST_VERSION_WITH_METADATA_PATCH = '2026-05-12';
const PasswordChange = z.object({
  current_password: z.string().optional(),
  new_password: z.string(),
  sign_out_of_other_sessions: z.stringbool().default(false),
});

/** Returns the routes of the account page. They read, rename and delete the user, change the password and revoke sessions. */
export function meRoutes(instance: Instance): Routes<UserRequest, unknown> {
  const own = (user: User) => publicUserResource(user, browserMemberships(instance, user));
  return {
    'GET /v1/me': ({ user }) => own(user),
    'PATCH /v1/me': ({ user, body, url }) => {
      requireSettings(instance, body);
      const fields = parse(Profile, body);
      const {
        unsafe_metadata: unsafeMetadata,
        primary_email_address_id: email,
        primary_phone_number_id: phone,
      } = fields;
      const version = url.searchParams.get('__clerk_api_version') ?? '';
      if (unsafeMetadata && version >= FIRST_VERSION_WITH_METADATA_PATCH)
        throw parameterError('unknown', 'unsafe_metadata');
      const changes = {
        firstName: (fields.first_name ?? user.firstName) || null,
        lastName: (fields.last_name ?? user.lastName) || null,
        username: (fields.username ?? user.username) || null,
        ...(email && { emails: withPrimary(user.emails, email, 'primary_email_address_id') }),
        ...(phone && { phones: withPrimary(user.phones, phone, 'primary_phone_number_id') }),
        ...(unsafeMetadata && { unsafeMetadata }),
      };
      return own(updateUser(instance, user, changes));
    },
    'PATCH /v1/me/metadata': ({ user, body }) => {
      const { unsafe_metadata: patch } = parse(MetadataPatch, body);
      return own(updateUser(instance, user, { unsafeMetadata: mergeMetadata(user.unsafeMetadata, patch) }));
    },
    'POST /v1/me/change_password': ({ user, session, body }) => {
      const change = parse(PasswordChange, body);
      // With reverification, the user has already been verified.
      if (user.password !== null && !instance.settings.reverification)
        requirePassword(user, change.current_password ?? '', 'current_password');
      const password = acceptPassword(change.new_password, 'new_password');
      const updated = updateUser(instance, user, { password });
      if (change.sign_out_of_other_sessions) endSessionsOf(instance, updated, session);
      return own(updated);
    },
    'POST /v1/me/profile_image': ({ user, url, file }) => {
      const imageUrl = storeImage(instance, url, file);
      updateUser(instance, user, { imageUrl });
      return { object: 'image', id: imageUrl.split('/').at(-1), name: null, public_url: imageUrl };
    },
    'DELETE /v1/me/profile_image': ({ user }) =>
      deletedResource(updateUser(instance, user, { imageUrl: null }).id, 'image'),
    'DELETE /v1/me': ({ user }) => deleteUser(instance, user),
    'POST /v1/me/sessions/:id/revoke': ({ user, id, browser }) => {
      const session = instance.store.sessions.get(id);
      if (session?.userId !== user.id) throw notFound('The session');
      return currentSession(instance, endSession(instance, session, 'revoked'), browser);
    },
  };
}
