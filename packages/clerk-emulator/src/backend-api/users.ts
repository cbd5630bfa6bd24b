import { z } from 'zod';
import { type ApiRequest, parse, type Routes } from '../http';
import {
  acceptPassword,
  createUser,
  deleteUser,
  endSessionsOf,
  type NewUser,
  requireUser,
  updateUser,
} from '../instance/accounts';
import { ApiError } from '../instance/api-error';
import type { User } from '../instance/data';
import { EmailAddress, PhoneNumber, withPrimary } from '../instance/identifiers';
import { storeImage } from '../instance/images';
import type { Instance } from '../instance/instance';
import { issueOAuthToken } from '../instance/issued-tokens';
import { changedMetadata, MetadataChange, mergedMetadata } from '../instance/metadata';
import { hashPassword, importDigest, passwordMatches } from '../instance/passwords';
import { userResource } from '../instance/resources';
import { UserSettings } from '../instance/settings';

/** The values of `password_hasher`. */
const HASHERS =
  'argon2i argon2id bcrypt bcrypt_sha256_django ldap_ssha md5 md5_phpass pbkdf2_sha1 pbkdf2_sha256 pbkdf2_sha256_django ' +
  'pbkdf2_sha512 pbkdf2_sha512_hex phpass scrypt_firebase scrypt_werkzeug sha256 sha512_symfony';
const UserFields = {
  password: z.string().nullish(),
  password_digest: z.string().nullish(),
  password_hasher: z.enum(HASHERS.split(' ')).nullish(),
  skip_password_checks: z.boolean().nullish(),
  username: z.string().min(1).nullish(),
  first_name: z.string().nullish(),
  last_name: z.string().nullish(),
  external_id: z.string().min(1).nullish(),
  created_at: z.iso.datetime({ offset: true }).nullish(),
  ...MetadataChange.shape,
  ...UserSettings.shape,
  // Without effect, because the emulator has no second factors and no legal checks.
  backup_codes: z.array(z.string()).nullish(),
  skip_legal_checks: z.boolean().nullish(),
  totp_secret: z.string().nullish(),
};
export const CreateUser = z
  .strictObject({
    ...UserFields,
    email_address: z.array(EmailAddress).default([]),
    phone_number: z.array(PhoneNumber).default([]),
    web3_wallet: z.array(z.string().min(1)).default([]),
    banned: z.boolean().nullish().transform(Boolean),
    locked: z.boolean().nullish().transform(Boolean),
    // Without effect, because identifiers of the emulator are not reserved.
    email_address_identification_status: z.array(z.string()).nullish(),
    phone_number_identification_status: z.array(z.string()).nullish(),
    skip_password_requirement: z.boolean().nullish(),
    skip_user_requirement: z.boolean().nullish(),
  })
  .refine(
    (user) =>
      user.skip_user_requirement ||
      user.username ||
      [user.email_address, user.phone_number, user.web3_wallet].some(({ length }) => length > 0),
    { error: 'the user needs an identifier', path: ['email_address'] },
  );
const UpdateUser = z.strictObject({
  ...UserFields,
  primary_email_address_id: z.string().nullish(),
  sign_out_of_other_sessions: z.boolean().nullish(),
  primary_phone_number_id: z.string().nullish(),
  primary_web3_wallet_id: z.string().nullish(),
  // Without effect, because a picture is uploaded to its user, and the emulator does not notify.
  profile_image_id: z.string().nullish(),
  notify_primary_email_address_changed: z.boolean().nullish(),
});

const OAuthTokenRequest = z.strictObject({
  audience: z.string().optional(),
  scopes: z.array(z.string()).optional(),
  client_id: z.string().optional(),
});

/** Returns the Backend API routes for users. A request with an unknown parameter gets a 422 that names the parameter. */
export function userRoutes(instance: Instance): Routes<ApiRequest, unknown> {
  const change = (id: string, changes: Partial<User>) =>
    userResource(updateUser(instance, requireUser(instance, id), changes));
  return {
    'POST /v1/users': ({ body }) => {
      const input = parse(CreateUser, body);
      const message = '["password"] data doesn\'t match user requirements set for this instance';
      if (!input.password && !input.password_digest && !input.skip_password_requirement)
        throw new ApiError(422, 'form_data_missing', message);
      return userResource(createUser(instance, newUser(input)));
    },
    'GET /v1/users/:id': ({ id }) => userResource(requireUser(instance, id)),
    // Returns an OAuth access token. Clerk does not have this operation.
    'POST /v1/users/:id/oauth_token': ({ id, body, url }) => {
      const { client_id: clientId, ...request } = parse(OAuthTokenRequest, body);
      const token = { issuer: url.origin, userId: id };
      const jwt = issueOAuthToken(instance, token, { ...request, clientId });
      return { object: 'token', jwt };
    },
    'PATCH /v1/users/:id': ({ id, body }) => {
      const input = parse(UpdateUser, body);
      const user = requireUser(instance, id);
      const settings = UserSettings.parse({ ...user.settings, ...body });
      const { primary_email_address_id: email, primary_phone_number_id: phone } = input;
      const { primary_web3_wallet_id: wallet } = input;
      const updated = updateUser(instance, user, {
        ...userChanges(input),
        ...(email && { emails: withPrimary(user.emails, email, 'primary_email_address_id') }),
        ...(phone && { phones: withPrimary(user.phones, phone, 'primary_phone_number_id') }),
        ...(wallet && { wallets: withPrimary(user.wallets, wallet, 'primary_web3_wallet_id') }),
        settings,
      });
      if (input.sign_out_of_other_sessions) endSessionsOf(instance, updated);
      return userResource(updated);
    },
    'POST /v1/users/:id/profile_image': ({ id, url, file }) =>
      change(id, { imageUrl: storeImage(instance, url, file) }),
    'DELETE /v1/users/:id/profile_image': ({ id }) => change(id, { imageUrl: null }),
    'POST /v1/users/:id/ban': ({ id }) => change(id, { banned: true }),
    'POST /v1/users/:id/unban': ({ id }) => change(id, { banned: false }),
    'POST /v1/users/:id/lock': ({ id }) => change(id, { locked: true }),
    'POST /v1/users/:id/unlock': ({ id }) => change(id, { locked: false }),
    'PATCH /v1/users/:id/metadata': ({ id, body }) => {
      const user = requireUser(instance, id);
      return userResource(updateUser(instance, user, mergedMetadata(user, parse(MetadataChange, body))));
    },
    'PUT /v1/users/:id/metadata': ({ id, body }) => change(id, changedMetadata(parse(MetadataChange, body))),
    'POST /v1/users/:id/verify_password': ({ id, body }) => {
      const { password } = parse(z.strictObject({ password: z.string() }), body);
      if (passwordMatches(password, requireUser(instance, id).password)) return { verified: true };
      throw new ApiError(422, 'incorrect_password', 'Password is incorrect.', 'password');
    },
    'DELETE /v1/users/:id': ({ id }) => deleteUser(instance, requireUser(instance, id)),
  };
}

/** Returns a new user with the fields of a request. Throws as `userChanges` does. */
export function newUser(input: z.output<typeof CreateUser>): NewUser {
  const { email_address: emails, phone_number: phones, web3_wallet: wallets, banned, locked } = input;
  const settings = UserSettings.parse(input);
  return { ...userChanges(input), settings, emails, phones, wallets, banned, locked };
}

/** Returns the changed fields. Throws a 422 if there is a digest without a hasher, or a hasher without a digest. */
function userChanges(fields: z.output<z.ZodObject<typeof UserFields>>): Partial<User> {
  const { password, password_digest: digest, password_hasher: hasher, username, created_at } = fields;
  if (!digest !== !hasher) {
    const missing = digest ? 'password_hasher' : 'password_digest';
    throw new ApiError(422, 'form_param_missing', `${missing} must be included.`, missing);
  }
  return {
    ...(password && {
      password: fields.skip_password_checks ? hashPassword(password) : acceptPassword(password, 'password'),
    }),
    ...(digest && hasher && { password: importDigest(hasher, digest) }),
    ...(username !== undefined && { username }),
    ...(fields.first_name !== undefined && { firstName: fields.first_name }),
    ...(fields.last_name !== undefined && { lastName: fields.last_name }),
    ...(fields.external_id !== undefined && { externalId: fields.external_id }),
    ...(created_at && { createdAt: Date.parse(created_at) }),
    ...changedMetadata(fields),
  };
}
