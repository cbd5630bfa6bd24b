import { z } from 'zod';
import { type ApiRequest, pageOf, parse, type Routes } from '../http';
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
import type { OrganizationInvitation, User } from '../instance/data';
import { EmailAddress, PhoneNumber, textsOf, withPrimary } from '../instance/identifiers';
import { storeImage } from '../instance/images';
import type { Instance } from '../instance/instance';
import { issueOAuthToken } from '../instance/issued-tokens';
import {
  invitationResource,
  membershipResource,
  publicOrganizationData,
} from '../instance/organization-resources';
import { invitationsTo, membershipsOf } from '../instance/organizations';
import { hashPassword, importDigest, passwordMatches } from '../instance/passwords';
import { invitationStatus, userResource } from '../instance/resources';
import { UserSettings } from '../instance/settings';
import type { Delivery } from '../instance/webhook-attempt';
import { describeList, type Fields, optionalPage } from './lists';
import { changedMetadata, MetadataChange, mergedMetadata } from './metadata';

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
  // Without effect: users do not sign in with wallets, and the emulator does not notify.
  primary_web3_wallet_id: z.string().nullish(),
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
      if (!input.password && !input.password_digest && !input.skip_password_requirement)
        throw passwordRequired();
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
      const updated = updateUser(instance, user, {
        ...userChanges(input),
        ...(email && { emails: withPrimary(user.emails, email, 'primary_email_address_id') }),
        ...(phone && { phones: withPrimary(user.phones, phone, 'primary_phone_number_id') }),
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
      return userResource(updateUser(instance, user, mergedMetadata(user, body)));
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

/** Returns the error for a request that creates a user without a password and does not set `skip_password_requirement`. */
function passwordRequired(): ApiError {
  const message = '["password"] data doesn\'t match user requirements set for this instance';
  return new ApiError(422, 'form_data_missing', message);
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
    ...(username === undefined ? {} : { username }),
    ...(fields.first_name === undefined ? {} : { firstName: fields.first_name }),
    ...(fields.last_name === undefined ? {} : { lastName: fields.last_name }),
    ...(fields.external_id === undefined ? {} : { externalId: fields.external_id }),
    ...(created_at && { createdAt: Date.parse(created_at) }),
    ...changedMetadata(fields),
  };
}

/** The fields by which a list of users, or of rows that belong to users, is selected and sorted. */
export function userFields<Row>(userOf: (row: Row) => User): Fields<Row> {
  const fields: Fields<User> = {
    email_address: ({ emails }) => emails.map(({ value }) => value),
    phone_number: ({ phones }) => phones.map(({ value }) => value),
    web3_wallet: ({ wallets }) => wallets.map(({ value }) => value),
    web3wallet: ({ wallets }) => wallets.map(({ value }) => value),
    username: ({ username }) => [username],
    user_id: ({ id }) => [id],
    first_name: ({ firstName }) => [firstName],
    last_name: ({ lastName }) => [lastName],
    name: ({ firstName, lastName }) => [[firstName, lastName].filter(Boolean).join(' ')],
    query: textsOf,
    created_at: ({ createdAt }) => [createdAt],
    updated_at: ({ updatedAt }) => [updatedAt],
    last_sign_in_at: ({ lastSignInAt }) => [lastSignInAt],
    // The emulator records no activity but sign-ins.
    last_active_at: ({ lastSignInAt }) => [lastSignInAt],
  };
  return Object.fromEntries(
    Object.entries(fields).map(([name, read]) => [name, (row: Row) => read(userOf(row))]),
  );
}

/** The filters that lists of users and of memberships have in common. */
export const USER_FILTERS =
  'email_address phone_number username web3_wallet user_id query email_address_query phone_number_query ' +
  'username_query name_query last_active_at_before last_active_at_after created_at_before created_at_after';

const USER_ORDERS =
  'created_at updated_at email_address web3wallet first_name last_name phone_number username last_active_at last_sign_in_at';

/** Body of a webhook. In a user event, `id` is the id of the user. In a session event, it is the id of the session. */
const Event = z.object({ data: z.object({ id: z.string() }) });

/** Returns the Backend API routes that list users, and what belongs to a user. */
export function userListRoutes(instance: Instance): Routes<ApiRequest, unknown> {
  const { users } = instance.store;
  const list = {
    fields: {
      ...userFields((user: User) => user),
      external_id: ({ externalId }: User) => [externalId],
      organization_id: (user: User) => membershipsOf(instance, user).map((each) => each.organizationId),
      banned: ({ banned }: User) => [String(banned)],
      // Users of the emulator have no social accounts.
      provider: () => [],
      provider_user_id: () => [],
    },
    filters: `${USER_FILTERS} external_id organization_id banned last_active_at_since last_sign_in_at_before last_sign_in_at_after provider provider_user_id`,
  };
  const selectCounted = describeList({ ...list, others: '' });
  const selectUsers = describeList({ ...list, orders: USER_ORDERS, others: 'limit offset starting_after' });
  const selectInvitations = describeList({
    fields: { status: (row: OrganizationInvitation) => [invitationStatus(instance, row)] },
    filters: 'status',
  });
  return {
    'GET /v1/users': ({ url }) => {
      return pageOf(url, selectUsers(users.all(), url), userResource).data;
    },
    'GET /v1/users/count': ({ url }) => {
      const { length } = selectCounted(users.all(), url);
      return { object: 'total_count', total_count: length };
    },
    'GET /v1/users/:id/organization_memberships': ({ id, url }) => {
      const memberships = membershipsOf(instance, requireUser(instance, id));
      return pageOf(url, memberships, (membership) => membershipResource(instance, membership));
    },
    'GET /v1/users/:id/organization_invitations': ({ id, url }) => {
      const own = invitationsTo(instance, requireUser(instance, id));
      const format = (row: OrganizationInvitation) => ({
        ...invitationResource(instance, row),
        public_organization_data: publicOrganizationData(instance, row),
      });
      return pageOf(url, selectInvitations(own.reverse(), url), format);
    },
    // Users of the emulator have no social accounts.
    'GET /v1/users/:id/oauth_access_tokens/:otherId': ({ id, url }) => {
      requireUser(instance, id);
      return optionalPage(url, []);
    },
    // Returns the webhook deliveries of `user.*` events about a user. Clerk does not have this operation.
    'GET /v1/users/:id/deliveries': ({ id }) => {
      requireUser(instance, id);
      return instance.webhooks.list().filter((delivery) => isAbout(delivery, id));
    },
  };
}

function isAbout({ body }: Delivery, id: string): boolean {
  return Event.safeParse(JSON.parse(body)).data?.data.id === id;
}
