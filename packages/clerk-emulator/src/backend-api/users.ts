import { z } from 'zod';
import { parse, type Routes } from '../http';
import {
  acceptPassword,
  createUser,
  deleteUser,
  EmailAddress,
  requireUser,
  updateUser,
} from '../instance/accounts';
import type { Delivery, User } from '../instance/data';
import { ApiError } from '../instance/error';
import type { Instance } from '../instance/instance';
import { hashPassword, passwordMatches } from '../instance/passwords';
import { deletedUserResource, userResource } from '../instance/resources';
import { Page } from './page';

const Metadata = z.record(z.string(), z.unknown());

const UserFields = {
  password: z.string().optional(),
  first_name: z.string().nullish(),
  last_name: z.string().nullish(),
  external_id: z.string().min(1).nullish(),
  public_metadata: Metadata.optional(),
  private_metadata: Metadata.optional(),
  unsafe_metadata: Metadata.optional(),
  skip_password_checks: z.boolean().optional(),
};
const CreateUser = z.strictObject({
  ...UserFields,
  email_address: z.array(EmailAddress).length(1, 'this instance takes exactly one address'),
  skip_password_requirement: z.boolean().optional(),
});
const UpdateUser = z.strictObject(UserFields);
const MetadataChange = z.strictObject({
  public_metadata: Metadata.optional(),
  private_metadata: Metadata.optional(),
  unsafe_metadata: Metadata.optional(),
});
/** Parses the first value of a parameter and ignores the other values. A query may repeat a parameter. */
const first = <Schema extends z.ZodType>(schema: Schema) =>
  z.preprocess((values) => (Array.isArray(values) ? values[0] : values), schema);
const upTo100 = z.array(z.string()).max(100).optional();
const Selection = {
  email_address: upTo100,
  user_id: upTo100,
  external_id: upTo100,
  query: first(z.string().toLowerCase().optional()),
};
const CountUsers = z.strictObject(Selection);
const ListUsers = z.strictObject({
  ...Selection,
  limit: first(Page.shape.limit),
  offset: first(Page.shape.offset),
  order_by: first(z.string().default('-created_at')),
  created_at_after: first(z.coerce.number().int().optional()),
});
type Selection = z.output<typeof CountUsers> & { readonly created_at_after?: number | undefined };

/** Values of `order_by`, each with the function that returns the sort key of a user. */
const ORDERS = new Map<string, (user: User) => string | number>([
  ['created_at', (user) => user.createdAt],
  ['updated_at', (user) => user.updatedAt],
  ['email_address', (user) => user.email],
  ['first_name', (user) => user.firstName ?? ''],
  ['last_name', (user) => user.lastName ?? ''],
  ['last_sign_in_at', (user) => user.lastSignInAt ?? 0],
]);

/** Body of a webhook. In a user event, `id` is the id of the user. In a session event, it is the id of the session. */
const Event = z.object({ data: z.object({ id: z.string() }) });

/** Returns the Backend API routes for users. A request with an unknown parameter gets a 422 that names the parameter. */
export function userRoutes(instance: Instance): Routes {
  return {
    'POST /v1/users': ({ body }) => {
      const { email_address, skip_password_requirement, ...fields } = parse(CreateUser, body);
      const [email = ''] = email_address;
      if (fields.password === undefined && !skip_password_requirement) throw passwordRequired();
      return { body: userResource(createUser(instance, { email, ...userChanges(fields) })) };
    },
    'GET /v1/users': ({ url }) => {
      const { limit, offset, order_by, ...selection } = parse(ListUsers, parameters(url));
      const users = sortedUsers(selectedUsers(instance, selection), order_by);
      return { body: users.slice(offset, offset + limit).map(userResource) };
    },
    'GET /v1/users/count': ({ url }) => {
      const count = selectedUsers(instance, parse(CountUsers, parameters(url))).length;
      return { body: { object: 'total_count', total_count: count } };
    },
    'GET /v1/users/:id': ({ id }) => ({ body: userResource(requireUser(instance, id)) }),
    // Returns the webhook deliveries of `user.*` events about a user. Clerk does not have this operation.
    'GET /v1/users/:id/deliveries': ({ id }) => {
      requireUser(instance, id);
      return { body: instance.webhooks.list().filter((delivery) => isAbout(delivery, id)) };
    },
    'PATCH /v1/users/:id': ({ id, body }) => {
      const changes = userChanges(parse(UpdateUser, body));
      return { body: userResource(updateUser(instance, requireUser(instance, id), changes)) };
    },
    'PATCH /v1/users/:id/metadata': ({ id, body }) => {
      const user = requireUser(instance, id);
      const change = parse(MetadataChange, body);
      const merged = {
        publicMetadata: mergeMetadata(user.publicMetadata, change.public_metadata),
        privateMetadata: mergeMetadata(user.privateMetadata, change.private_metadata),
        unsafeMetadata: mergeMetadata(user.unsafeMetadata, change.unsafe_metadata),
      };
      return { body: userResource(updateUser(instance, user, merged)) };
    },
    'PUT /v1/users/:id/metadata': ({ id, body }) => {
      const changes = userChanges(parse(MetadataChange, body));
      return { body: userResource(updateUser(instance, requireUser(instance, id), changes)) };
    },
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

function userChanges(fields: z.output<typeof UpdateUser>): Partial<User> {
  const { password, skip_password_checks: unchecked } = fields;
  return {
    ...(password === undefined
      ? {}
      : { password: unchecked ? hashPassword(password) : acceptPassword(password, 'password') }),
    ...(fields.first_name === undefined ? {} : { firstName: fields.first_name }),
    ...(fields.last_name === undefined ? {} : { lastName: fields.last_name }),
    ...(fields.external_id === undefined ? {} : { externalId: fields.external_id }),
    ...(fields.public_metadata && { publicMetadata: fields.public_metadata }),
    ...(fields.private_metadata && { privateMetadata: fields.private_metadata }),
    ...(fields.unsafe_metadata && { unsafeMetadata: fields.unsafe_metadata }),
  };
}

function parameters({ searchParams }: URL): Record<string, string[]> {
  return Object.fromEntries(
    [...new Set(searchParams.keys())].map((name) => [name, searchParams.getAll(name)]),
  );
}

/** Selects users by id. An id may have the prefix `-` (exclude) or `+` (include, the default). */
function selectById({ store }: Instance, ids: readonly string[]): User[] {
  const without = new Set(ids.filter((id) => id.startsWith('-')).map((id) => id.slice(1)));
  const wanted = new Set(ids.filter((id) => !id.startsWith('-')).map((id) => id.replace(/^\+/, '')));
  const users =
    wanted.size === 0 ? store.users.all() : [...wanted].flatMap((id) => store.users.get(id) ?? []);
  return users.filter(({ id }) => !without.has(id));
}

function selectedUsers(instance: Instance, selection: Selection): User[] {
  const { email_address, user_id = [], external_id: externalIds = [], query, created_at_after } = selection;
  const emails = email_address?.map((email) => email.toLowerCase()) ?? [];
  return selectById(instance, user_id).filter(
    (user) =>
      (created_at_after === undefined || user.createdAt > created_at_after) &&
      (emails.length === 0 || emails.includes(user.email)) &&
      (externalIds.length === 0 || externalIds.includes(user.externalId ?? '')) &&
      (query === undefined ||
        [user.id, user.email, user.firstName, user.lastName].some((field) =>
          field?.toLowerCase().includes(query),
        )),
  );
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

/** Merges nested objects recursively, as Clerk does. A null removes its key. */
function mergeMetadata(
  current: Readonly<Record<string, unknown>>,
  change: Readonly<Record<string, unknown>> | undefined,
): Record<string, unknown> {
  const merged = new Map(Object.entries(current));
  for (const [key, value] of Object.entries(change ?? {})) {
    const [before, after] = [Metadata.safeParse(merged.get(key)), Metadata.safeParse(value)];
    if (value === null) merged.delete(key);
    else if (before.success && after.success) merged.set(key, mergeMetadata(before.data, after.data));
    else merged.set(key, value);
  }
  return Object.fromEntries(merged);
}
