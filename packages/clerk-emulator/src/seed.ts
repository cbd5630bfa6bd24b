import { readFileSync } from 'node:fs';
import { isNode, LineCounter, parseDocument } from 'yaml';
import { z } from 'zod';
import { CreateOrganization, organizationChanges } from './backend-api/organizations';
import { CreateUser, newUser } from './backend-api/users';
import { createUser } from './instance/accounts';
import { requireFound } from './instance/api-error';
import { userByIdentifier } from './instance/identifiers';
import type { Instance } from './instance/instance';
import { addMember, createOrganization } from './instance/organizations';
import { Settings } from './instance/settings';

const Id = z.string().regex(/^\w+$/).exactOptional();

/**
 * The state with which an emulator starts, and to which it is reset. A user has the fields of `POST /v1/users` and an organization
 * those of `POST /v1/organizations`. Both can have an `id`. A member is a user by id, address, phone number or user name.
 */
export const Seed = z.strictObject({
  settings: Settings.partial().strict().exactOptional(),
  users: z.array(CreateUser.safeExtend({ id: Id })).default([]),
  organizations: z
    .array(
      CreateOrganization.extend({
        id: Id,
        members: z
          .array(z.strictObject({ user: z.string(), role: z.string().default('org:member') }))
          .default([]),
      }),
    )
    .default([]),
});
export type Seed = z.input<typeof Seed>;

/** Creates the rows of a seed and sends their events. Throws if an identifier is taken, or a member or role is unknown. */
export function plant(instance: Instance, seed: Seed): void {
  const { users, organizations } = Seed.parse(seed);
  for (const { id, ...user } of users) createUser(instance, { ...newUser(user), ...(id && { id }) });
  const find = (user: string) =>
    requireFound(instance.store.users.get(user) ?? userByIdentifier(instance, user), `The user ${user}`);
  for (const { id, name, created_by, members, ...fields } of organizations) {
    const organization = createOrganization(instance, {
      ...(id && { id }),
      name,
      creator: created_by ? find(created_by) : undefined,
      ...organizationChanges(fields),
    });
    for (const { user, role } of members) addMember(instance, organization, { user: find(user), role });
  }
}

/** Reads a file in JSON or YAML. Throws an error with the line of the first invalid value. */
export function readFile<Schema extends z.ZodType>(file: string, schema: Schema): z.output<Schema> {
  const lines = new LineCounter();
  const document = parseDocument(readFileSync(file, 'utf8'), { lineCounter: lines });
  const [syntaxError] = document.errors;
  if (syntaxError) throw new Error(`${file}: ${syntaxError.message}`);
  const { data, error } = schema.safeParse(document.toJS());
  const issue = error?.issues[0];
  if (issue === undefined) return schema.parse(data);
  // The line of an unknown key is that of the key, and the line of a missing one is that of its object.
  let path = [...issue.path, ...(issue.code === 'unrecognized_keys' ? issue.keys : [])].map(String);
  const node = () => document.getIn(path, true);
  while (path.length > 0 && !isNode(node())) path = path.slice(0, -1);
  const found = node();
  const { line } = lines.linePos(isNode(found) ? (found.range?.[0] ?? 0) : 0);
  throw new Error(`${file}:${line}: ${issue.path.join('.')}: ${issue.message}`);
}
