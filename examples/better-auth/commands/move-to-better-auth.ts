import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createClerkClient } from '@clerk/backend';
import { generateId } from 'better-auth';
import { Command } from 'commander';
import { parse } from 'csv-parse/sync';
import { z } from 'zod';
import { safeMessage } from '#lib/base/errors';
import { retry } from '#lib/base/retry';
import { clerkEnvironment } from '#lib/clerk/variables';
import { providerOrganizations, providerUsers } from '#lib/operator/paginate';
import { lookUp } from '#lib/operator/rows';
import { register } from '#lib/register';
import { closeDatabase } from '#lib/storage/database';
import { auth } from '../providers/better-auth/auth';
import { runMain, shown } from './command';
import { backfillUsers, readMapFile } from './links/in-bulk';
import { relinkLinks } from './links/relink';

/*
 * Moves the users and organizations of Clerk to Better Auth (docs/leave-clerk.md). The ids there are chosen first, then linked,
 * and only then used, so that no sign-in finds an id without its link. The command can be repeated, also after it was killed.
 */

const RETRY = { seconds: 120 };
const PAGE = 500;

const ClerkUser = z.object({
  first_name: z.string().nullish(),
  last_name: z.string().nullish(),
  primary_email_address_id: z.string().nullish(),
  email_addresses: z.array(
    z.object({
      id: z.string(),
      email_address: z.string().toLowerCase(),
      verification: z.object({ status: z.string() }).nullish(),
    }),
  ),
});
const ClerkOrganization = z.object({ name: z.string(), slug: z.string().nullish() });
const Password = z.object({ id: z.string(), password_digest: z.string(), password_hasher: z.string() });

let staying = 0;
/** Prints a user or an organization that is not moved, and why. */
function stay(id: string, reason: string): void {
  staying += 1;
  process.stdout.write(`stays at Clerk: ${shown(id)}: ${reason}\n`);
}

/** Chooses an id for each of these that has none, and stores the map before any other step reads it. */
async function chooseIds(file: string, ids: readonly string[]): Promise<Map<string, string>> {
  const lines = existsSync(file) ? await readMapFile(file, ['old', 'new']) : [];
  const map = new Map(lines.flatMap(({ oldId, newId, collision }) => (collision ? [] : [[oldId, newId]])));
  for (const id of ids) if (!map.has(id)) map.set(id, generateId());
  writeFileSync(`${file}.new`, [...map].map((pair) => `${pair}\n`).join(''));
  renameSync(`${file}.new`, file);
  return map;
}

/** Returns those of the ids whose new id leads to the same internal id. Another one would get a second internal id there. */
async function linkedIds(kind: 'user' | 'tenant', ids: readonly string[], map: ReadonlyMap<string, string>) {
  const found: string[] = [];
  for (let at = 0; at < ids.length; at += PAGE) {
    const page = ids.slice(at, at + PAGE);
    const all = [...page, ...page.flatMap((id) => map.get(id) ?? [])];
    const { linked } = await retry(RETRY, () => lookUp(kind, all));
    const internalId = (id = '') => linked.get(id)?.id;
    found.push(...page.filter((id) => internalId(id) && internalId(id) === internalId(map.get(id))));
  }
  return new Set(found);
}

type Row = Record<string, unknown>;

/** Inserts a row of Better Auth unless there is one with these values. */
async function insertOnce(model: string, key: Row, row: Row): Promise<void> {
  const { adapter } = await auth().$context;
  const where = Object.entries(key).map(([field, value]) => ({ field, value: String(value) }));
  if (await adapter.findOne({ model, where })) return;
  await adapter.create({ model, data: { ...row, ...key }, forceAllowId: true });
}

/** Returns the hashes of the CSV file that Clerk's dashboard exports, by user. Only bcrypt has a verifier (providers/better-auth). */
function readPasswords(file: string | undefined): ReadonlyMap<string, string> {
  const rows = file ? z.array(Password).parse(parse(readFileSync(file), { columns: true })) : [];
  const hashed = rows.filter((row) => row.password_hasher === 'bcrypt');
  return new Map(hashed.map((row) => [row.id, row.password_digest]));
}

/** Reads all users of Clerk. Returns those that can have an account at Better Auth. */
async function readUsers(file: string) {
  const { adapter } = await auth().$context;
  const known = await chooseIds(file, []);
  const users = [];
  for await (const page of providerUsers(RETRY)) {
    const read = page.map(({ id, createdAt, raw }) => {
      const { primary_email_address_id: primary, email_addresses: all, ...names } = ClerkUser.parse(raw);
      const email = all.find((address) => address.id === primary) ?? all[0];
      const name = [names.first_name, names.last_name].filter(Boolean).join(' ');
      return { id, createdAt: new Date(createdAt), name, email };
    });
    const value = read.flatMap(({ email }) => email?.email_address ?? []);
    const where = [{ field: 'email', operator: 'in' as const, value }];
    const taken = value.length
      ? await adapter.findMany<{ id: string; email: string }>({ model: 'user', where, limit: PAGE })
      : [];
    for (const user of read) {
      const owner = taken.find(({ email }) => email === user.email?.email_address)?.id;
      // The owner of that account may not own the address, so the user does not get the account.
      if (owner !== undefined && owner !== known.get(user.id))
        stay(user.id, 'its address has another account there');
      else if (user.email) users.push({ ...user, email: user.email });
      else stay(user.id, 'it has no e-mail address');
    }
  }
  return users;
}

interface Options {
  readonly map: string;
  readonly organizations?: string;
  readonly passwords?: string;
}

const change = {
  skipCollisions: true,
  windowDays: 365,
  retrySeconds: RETRY.seconds,
  by: 'move-to-better-auth',
};

/** Moves the users. Returns the ids at Better Auth, by those at Clerk. */
async function moveUsers({ map: file, passwords }: Options): Promise<ReadonlyMap<string, string>> {
  const hashes = readPasswords(passwords);
  await backfillUsers({ retrySeconds: RETRY.seconds });
  const users = await readUsers(file);
  const ids = users.map(({ id }) => id);
  const map = await chooseIds(file, ids);
  await relinkLinks('user', { ...change, map: file });
  const linked = await linkedIds('user', ids, map);
  const moved = new Map<string, string>();
  for (const { id: oldId, email, name, createdAt } of users) {
    const [id = '', password] = [map.get(oldId), hashes.get(oldId)];
    const emailVerified = email.verification?.status === 'verified';
    const times = { createdAt, updatedAt: new Date() };
    try {
      if (!linked.has(oldId)) throw new Error('its new id does not lead to its internal id');
      await insertOnce('user', { id }, { email: email.email_address, emailVerified, name, ...times });
      const account = { userId: id, providerId: 'credential' };
      if (password) await insertOnce('account', account, { accountId: id, password, ...times });
      moved.set(oldId, id);
    } catch (error) {
      stay(oldId, safeMessage(error));
    }
  }
  return moved;
}

async function moveOrganizations(file: string, users: ReadonlyMap<string, string>): Promise<number> {
  const { IDP_SECRET_KEY: secretKey, CLERK_API_URL: apiUrl } = clerkEnvironment();
  const { organizations: clerk } = createClerkClient({ secretKey, ...(apiUrl ? { apiUrl } : {}) });
  const organizations = [];
  for await (const page of providerOrganizations(RETRY)) organizations.push(...page);
  const ids = organizations.map(({ id }) => id);
  // Otherwise, the first request of each provider would create a tenant.
  for (const id of ids) await retry(RETRY, () => register('tenant', id));
  const map = await chooseIds(file, ids);
  await relinkLinks('tenant', { ...change, map: file });
  const linked = await linkedIds('tenant', ids, map);
  for (const { id: organizationId, createdAt, raw } of organizations) {
    const id = map.get(organizationId) ?? '';
    if (!linked.has(organizationId)) {
      stay(organizationId, 'its new id does not lead to its tenant');
      continue;
    }
    const { name, slug } = ClerkOrganization.parse(raw);
    await insertOnce('organization', { id }, { name, slug: slug ?? id, createdAt: new Date(createdAt) });
    for (let offset = 0, isLast = false; !isLast; offset += PAGE) {
      const page = { organizationId, limit: PAGE, offset };
      const { data } = await clerk.getOrganizationMembershipList(page);
      for (const { publicUserData, role: ofClerk } of data) {
        const userId = users.get(publicUserData?.userId ?? '');
        const role = ofClerk === 'org:admin' ? 'owner' : 'member';
        const member = { organizationId: id, userId };
        if (userId) await insertOnce('member', member, { role, createdAt: new Date() });
      }
      isLast = data.length < PAGE;
    }
  }
  return linked.size;
}

const program = new Command('move-to-better-auth')
  .description('Moves the users of Clerk to Better Auth. Each keeps the internal id. Can be repeated.')
  .requiredOption(
    '--map <file>',
    'CSV file with old,new for each user. The command writes it. Keep it until the end',
  )
  .option('--organizations <file>', 'such a file for the organizations, which move too')
  .option(
    '--passwords <file>',
    "the users as Clerk's dashboard exports them, with the hashes of their passwords",
  )
  .action(async (options: Options) => {
    const users = await moveUsers(options);
    const organizations = options.organizations ? await moveOrganizations(options.organizations, users) : 0;
    process.stdout.write(
      `${users.size} users, ${organizations} organizations moved, ${staying} stay at Clerk\n`,
    );
    process.exitCode = staying > 0 ? 1 : 0;
  });

await runMain(program, closeDatabase);
