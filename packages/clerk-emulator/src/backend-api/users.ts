import { z } from 'zod';
import { pageOf, parse, type Routes, readParameters } from '../http';
import {
  acceptPassword,
  createUser,
  deleteUser,
  EmailAddress,
  issueOAuthToken,
  requireUser,
  updateUser,
} from '../instance/accounts';
import type { Delivery, User } from '../instance/data';
import { ApiError } from '../instance/error';
import type { Instance } from '../instance/instance';
import { membershipResource } from '../instance/organization-resources';
import { membershipsOf } from '../instance/organizations';
import { hashPassword, importDigest, passwordMatches } from '../instance/passwords';
import { deletedUserResource, userResource } from '../instance/resources';
import { selectById } from '../instance/table';
import { changedMetadata, MetadataChange, mergedMetadata } from './metadata';

/** The values of `password_hasher`. */
const Hasher = z.enum([
  'argon2i',
  'argon2id',
  'bcrypt',
  'bcrypt_sha256_django',
  'ldap_ssha',
  'md5',
  'md5_phpass',
  'pbkdf2_sha1',
  'pbkdf2_sha256',
  'pbkdf2_sha256_django',
  'pbkdf2_sha512',
  'pbkdf2_sha512_hex',
  'phpass',
  'scrypt_firebase',
  'scrypt_werkzeug',
  'sha256',
  'sha512_symfony',
]);
const UserFields = {
  password: z.string().nullish(),
  password_digest: z.string().nullish(),
  password_hasher: Hasher.nullish(),
  skip_password_checks: z.boolean().nullish(),
  username: z.string().min(1).nullish(),
  first_name: z.string().nullish(),
  last_name: z.string().nullish(),
  external_id: z.string().min(1).nullish(),
  created_at: z.iso.datetime({ offset: true }).nullish(),
  ...MetadataChange.shape,
  // The emulator accepts and ignores the other fields of Clerk.
  backup_codes: z.unknown().optional(),
  bypass_client_trust: z.unknown().optional(),
  create_organization_enabled: z.unknown().optional(),
  create_organizations_limit: z.unknown().optional(),
  delete_self_enabled: z.unknown().optional(),
  email_address_identification_status: z.unknown().optional(),
  legal_accepted_at: z.unknown().optional(),
  locale: z.unknown().optional(),
  notify_primary_email_address_changed: z.unknown().optional(),
  phone_number_identification_status: z.unknown().optional(),
  sign_out_of_other_sessions: z.unknown().optional(),
  skip_legal_checks: z.unknown().optional(),
  totp_secret: z.unknown().optional(),
};
const CreateUser = z
  .strictObject({
    ...UserFields,
    email_address: z.array(EmailAddress).default([]),
    phone_number: z.array(z.string().regex(/^\+\d{5,15}$/)).default([]),
    web3_wallet: z.array(z.string().min(1)).default([]),
    banned: z.boolean().nullish().transform(Boolean),
    locked: z.boolean().nullish().transform(Boolean),
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
const UpdateUser = z.strictObject(UserFields);
/** Parses the first value of a parameter and ignores the other values. A query may repeat a parameter. */
const first = <Schema extends z.ZodType>(schema: Schema) =>
  z.preprocess((values) => (Array.isArray(values) ? values[0] : values), schema);
const upTo100 = z.preprocess((value) => [value ?? []].flat(), z.array(z.string()).max(100));
const Selection = {
  email_address: upTo100,
  phone_number: upTo100,
  username: upTo100,
  user_id: upTo100,
  external_id: upTo100,
  organization_id: upTo100,
  query: first(z.string().toLowerCase().optional()),
  created_at_after: first(z.coerce.number().int().optional()),
};
const CountUsers = z.strictObject(Selection);
const ListUsers = z.strictObject({
  ...Selection,
  limit: z.unknown().optional(),
  offset: z.unknown().optional(),
  order_by: first(z.string().default('-created_at')),
});
type Selection = z.output<typeof CountUsers>;

const OAuthTokenRequest = z.strictObject({
  audience: z.string().optional(),
  scopes: z.array(z.string()).optional(),
  client_id: z.string().optional(),
});

/** Values of `order_by`, each with the function that returns the sort key of a user. */
const ORDERS = new Map<string, (user: User) => string | number>([
  ['created_at', (user) => user.createdAt],
  ['updated_at', (user) => user.updatedAt],
  ['email_address', (user) => user.email ?? ''],
  ['username', (user) => user.username ?? ''],
  ['first_name', (user) => user.firstName ?? ''],
  ['last_name', (user) => user.lastName ?? ''],
  ['last_sign_in_at', (user) => user.lastSignInAt ?? 0],
]);

/** Body of a webhook. In a user event, `id` is the id of the user. In a session event, it is the id of the session. */
const Event = z.object({ data: z.object({ id: z.string() }) });

/** Returns the Backend API routes for users. A request with an unknown parameter gets a 422 that names the parameter. */
export function userRoutes(instance: Instance): Routes {
  const change = (id: string, changes: Partial<User>) => ({
    body: userResource(updateUser(instance, requireUser(instance, id), changes)),
  });
  return {
    'POST /v1/users': ({ body }) => {
      const input = parse(CreateUser, body);
      const changes = userChanges(input);
      if (changes.password === undefined && !input.skip_password_requirement) throw passwordRequired();
      const { email_address: emails, phone_number: phones, web3_wallet: wallets, banned, locked } = input;
      const user = { ...changes, emails, phones, wallets, banned, locked };
      return { body: userResource(createUser(instance, user)) };
    },
    'GET /v1/users': ({ url }) => {
      const { order_by, ...selection } = parse(ListUsers, readParameters(url.searchParams));
      const users = sortedUsers(selectedUsers(instance, selection), order_by);
      return { body: pageOf(url, users, userResource).data };
    },
    'GET /v1/users/count': ({ url }) => {
      const query = parse(CountUsers, readParameters(url.searchParams));
      return { body: { object: 'total_count', total_count: selectedUsers(instance, query).length } };
    },
    'GET /v1/users/:id': ({ id }) => ({ body: userResource(requireUser(instance, id)) }),
    'GET /v1/users/:id/organization_memberships': ({ id, url }) => {
      const memberships = membershipsOf(instance, requireUser(instance, id));
      return { body: pageOf(url, memberships, (membership) => membershipResource(instance, membership)) };
    },
    // Returns the webhook deliveries of `user.*` events about a user. Clerk does not have this operation.
    'GET /v1/users/:id/deliveries': ({ id }) => {
      requireUser(instance, id);
      return { body: instance.webhooks.list().filter((delivery) => isAbout(delivery, id)) };
    },
    // Returns an OAuth access token. Clerk does not have this operation.
    'POST /v1/users/:id/oauth_token': ({ id, body, url }) => {
      const { client_id: clientId, ...request } = parse(OAuthTokenRequest, body);
      const token = { issuer: url.origin, userId: id };
      const jwt = issueOAuthToken(instance, token, { ...request, clientId });
      return { body: { object: 'token', jwt } };
    },
    'PATCH /v1/users/:id': ({ id, body }) => change(id, userChanges(parse(UpdateUser, body))),
    'POST /v1/users/:id/ban': ({ id }) => change(id, { banned: true }),
    'POST /v1/users/:id/unban': ({ id }) => change(id, { banned: false }),
    'POST /v1/users/:id/lock': ({ id }) => change(id, { locked: true }),
    'POST /v1/users/:id/unlock': ({ id }) => change(id, { locked: false }),
    'PATCH /v1/users/:id/metadata': ({ id, body }) => {
      const user = requireUser(instance, id);
      return { body: userResource(updateUser(instance, user, mergedMetadata(user, body))) };
    },
    'PUT /v1/users/:id/metadata': ({ id, body }) => change(id, changedMetadata(parse(MetadataChange, body))),
    'POST /v1/users/:id/verify_password': ({ id, body }) => {
      const { password } = parse(z.strictObject({ password: z.string() }), body);
      if (passwordMatches(password, requireUser(instance, id).password)) return { body: { verified: true } };
      throw new ApiError(422, 'incorrect_password', 'Password is incorrect.', 'password');
    },
    'DELETE /v1/users/:id': ({ id }) => {
      const user = requireUser(instance, id);
      deleteUser(instance, user);
      return { body: deletedUserResource(user) };
    },
  };
}

function isAbout({ body }: Delivery, id: string): boolean {
  return Event.safeParse(JSON.parse(body)).data?.data.id === id;
}

/** Returns the error for a request that creates a user without a password and does not set `skip_password_requirement`. */
function passwordRequired(): ApiError {
  const message = '["password"] data doesn\'t match user requirements set for this instance';
  return new ApiError(422, 'form_data_missing', message);
}

/** Returns the changed fields. Throws a 422 if there is a digest without a hasher, or a hasher without a digest. */
function userChanges(fields: z.output<typeof UpdateUser>): Partial<User> {
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

function selectedUsers(instance: Instance, selection: Selection): User[] {
  const { query, created_at_after: after } = selection;
  const wanted = selection.email_address.map((email) => email.toLowerCase());
  const matches = (values: readonly (string | null)[], selected: readonly string[]) =>
    selected.length === 0 || values.some((value) => value !== null && selected.includes(value));
  return selectById(instance.store.users, selection.user_id).filter((user) => {
    const emails = user.emails.map(({ value }) => value);
    const phones = user.phones.map(({ value }) => value);
    const texts = [user.id, ...emails, ...phones, user.username, user.firstName, user.lastName];
    return (
      (after === undefined || user.createdAt > after) &&
      matches(emails, wanted) &&
      matches(phones, selection.phone_number) &&
      matches([user.username], selection.username) &&
      matches([user.externalId], selection.external_id) &&
      (selection.organization_id.length === 0 ||
        membershipsOf(instance, user).some((each) =>
          selection.organization_id.includes(each.organizationId),
        )) &&
      (query === undefined || texts.some((text) => text?.toLowerCase().includes(query)))
    );
  });
}

function sortedUsers(users: User[], order: string): User[] {
  const [, sign, name = ''] = /^([+-]?)(.*)$/.exec(order) ?? [];
  const key = ORDERS.get(name);
  if (key === undefined) {
    throw new ApiError(422, 'form_param_format_invalid', `order_by is invalid: ${name}`, 'order_by');
  }
  const ascending = users.sort((one, other) => (key(one) < key(other) ? -1 : key(one) > key(other) ? 1 : 0));
  return sign === '-' ? ascending.reverse() : ascending;
}
