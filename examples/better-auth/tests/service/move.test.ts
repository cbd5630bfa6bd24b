import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { hashSync } from 'bcryptjs';
import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { waitUntil } from '../../dev/system/processes';
import { betterAuthOptions, signSession, startMove } from '../harness/better-auth';
import { runCommand } from '../harness/commands';
import { inParallel } from '../harness/parallel';
import { bearer, cookie, me, send, tokenFor } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';
import { temporaryFolder } from '../vitest/temporary-folder';

// Clerk's emulator and Better Auth in one application. The users move from one to the other, and back.

const USERS = 1_000;
/** Ends a test that hangs. */
const TIMEOUT_MS = 500_000;
const folder = temporaryFolder();
const map = path.join(folder, 'users.csv');
const service = stopAfterAll(await startTestService(await betterAuthOptions()));
const { database, environment, idp, url } = service;
const { pool } = database;
const rows = async (statement: string, values: unknown[] = []) =>
  (await pool.query<Record<string, unknown>>(statement, values)).rows;
const count = async (table: string) => Number((await rows(`SELECT count(*) FROM ${table}`))[0]?.['count']);
const COOKIE = 'better-auth.session_token';

const Body = z.object({ userId: z.string() });
/** Sends a request with these headers. Returns the internal id, or the status of an error response. */
async function visit(headers: Record<string, string>): Promise<string> {
  const { status, body } = await send(`${url}/users/v1/me`, { headers });
  return status === 200 ? Body.parse(body).userId : String(status);
}

interface User {
  readonly clerkId: string;
  readonly email: string;
  userId: string;
  /** Sessions at Better Auth, as a cookie and as a bearer token. */
  session?: string;
}
const users: User[] = [];
const byEmail = new Map<unknown, User>();

/** Opens a session for each user that has been created at Better Auth. */
async function openSessions(): Promise<void> {
  const created = await rows(`INSERT INTO auth_sessions (id, token, "userId", "expiresAt", "updatedAt")
    SELECT gen_random_uuid(), gen_random_uuid(), u.id, now() + interval '1 day', now() FROM auth_users u
    WHERE NOT EXISTS (SELECT FROM auth_sessions WHERE "userId" = u.id)
    RETURNING token, (SELECT email FROM auth_users WHERE id = "userId")`);
  for (const { email, token } of created) {
    const user = byEmail.get(email);
    if (user) user.session = signSession(String(token));
  }
}

/** Headers with the sessions that a browser or an app of the user can have. */
function credentialsOf({ clerkId, session }: User): Record<string, string>[] {
  const token = tokenFor(idp, clerkId);
  const ofClerk = [bearer(token), cookie(token)];
  if (session === undefined) return ofClerk;
  const own = `${COOKIE}=${session}`;
  const stale = `__session=${tokenFor(idp, clerkId, { exp: 1 })}; __client_uat=1; __clerk_db_jwt=x`;
  return [...ofClerk, bearer(session), { cookie: own }, { cookie: `${stale}; ${own}` }];
}

let requests = 0;
const wrong: string[] = [];
/** Sends requests of random users with each of their sessions until it is aborted. */
async function sendRequests(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const user = users[Math.floor(Math.random() * users.length)];
    if (user === undefined) return;
    for (const headers of credentialsOf(user)) {
      const seen = await visit(headers);
      requests += 1;
      if (seen !== user.userId) wrong.push(`${user.clerkId} ${Object.keys(headers)}: ${seen}`);
    }
  }
}
/** Waits until many more requests have been sent. */
async function moreRequests(): Promise<void> {
  const before = requests;
  await expect.poll(() => requests - before, { timeout: 60_000 }).toBeGreaterThan(300);
}

/** Starts the move, and kills it once the condition holds. */
async function moveUntil(condition: () => Promise<boolean>): Promise<void> {
  const { child, exited, output } = startMove(['--map', map], environment);
  expect(await waitUntil(condition, 120_000), output()).toBe(true);
  child.kill('SIGKILL');
  expect(await exited, output()).toBe('SIGKILL');
}

beforeAll(async () => {
  for (let index = 0; index < USERS; index++) {
    const email = `user${index}@example.com`;
    const user: User = { clerkId: idp.createUser({ email }).id, email, userId: '' };
    users.push(user);
    byEmail.set(email, user);
  }
  await inParallel(8, users, async (user) => {
    user.userId = await visit(bearer(tokenFor(idp, user.clerkId)));
  });
}, TIMEOUT_MS);

test(
  '1,000 users move to Better Auth and back while they send requests. Each has one internal id all the time, although the command is killed twice',
  async () => {
    const ended = new AbortController();
    const load = Promise.all(Array.from({ length: 2 }, () => sendRequests(ended.signal)));
    await moreRequests();
    await moveUntil(async () => (await count('previous_ids')) > 0);
    await moveUntil(async () => (await count('auth_users')) >= USERS / 3);
    await openSessions();
    await moreRequests();
    const { exited, written } = startMove(['--map', map], environment);
    expect(await exited, written.stdout).toBe(0);
    expect(written.stdout).toContain(`${USERS} users, 0 organizations moved, 0 stay at Clerk\n`);
    await openSessions();
    await moreRequests();
    const run = /--rollback (\S+)/.exec(written.stdout)?.[1] ?? '';
    expect(await runCommand('users', ['relink', '--rollback', run], environment)).toMatchObject({ exit: 0 });
    await moreRequests();
    ended.abort();
    await load;
    expect(wrong).toEqual([]);
    expect(users.filter(({ session }) => session === undefined)).toEqual([]);
    expect(await count('users')).toBe(USERS);
  },
  TIMEOUT_MS,
);

const account = async (headers: Record<string, string>) =>
  String((await send(`${url}/account`, { headers })).body);
const signUp = (email: string, password: string) =>
  send(`${url}/api/auth/sign-up/email`, {
    method: 'POST',
    headers: { origin: url, 'content-type': 'application/json', cookie: '__client_uat=1; theme=dark' },
    body: JSON.stringify({ email, password, name: '' }),
  });
const signIn = (email: string, password: string) =>
  send(`${url}/api/auth/sign-in/email`, {
    method: 'POST',
    headers: { origin: url, 'content-type': 'application/json' },
    body: JSON.stringify({ email, password }),
  });

test('A new user of Better Auth has an internal id at once, and its browser loses the cookies of Clerk', async () => {
  const { status, body, headers } = await signUp('new@example.com', 'a long password');
  expect(status).toBe(200);
  const { id } = z.object({ user: z.object({ id: z.string() }) }).parse(body).user;
  expect(await database.idsOf(id)).toHaveLength(1);
  const set = headers.getSetCookie();
  expect(set).toContainEqual(expect.stringMatching(/^__client_uat=; Path=\/; Max-Age=0$/));
  const [session = ''] = set.flatMap((line) => new RegExp(`^${COOKIE}=[^;]+`).exec(line) ?? []);
  expect([await visit({ cookie: session })]).toEqual(await database.idsOf(id));
  // A revoked session ends at once.
  await rows('DELETE FROM auth_sessions WHERE "userId" = $1', [id]);
  expect(await visit({ cookie: session })).toBe('401');
  expect(await send(`${url}/api/auth/unknown`)).toMatchObject({
    status: 404,
    body: { message: 'Not found' },
  });
});

test('The move keeps passwords and organizations, and names the users that stay', async () => {
  await signUp('taken@example.com', 'a long password');
  const taken = idp.createUser({ email: 'taken@example.com' });
  const nameless = idp.createUser({ email: 'nameless@example.com' });
  idp.store.users.put({ ...nameless, email: null, emails: [] });
  const ada = idp.createUser({ email: 'Ada@example.com', firstName: 'Ada', lastName: 'Lovelace' });
  const organization = idp.createOrganization({ name: 'Acme', createdBy: ada.id });
  const ofOrganization = tokenFor(idp, ada.id, { o: { id: organization.id, rol: 'admin' } });
  const before = await account(cookie(ofOrganization));
  const [tenantId = ''] = await database.of('tenant').idsOf(organization.id);
  expect(before).toContain(tenantId);
  const userId = Body.parse((await me(url, ofOrganization)).body).userId;

  const exported = path.join(folder, 'exported.csv');
  const hash = hashSync('correct horse', 4);
  writeFileSync(exported, `id,password_digest,password_hasher\n${ada.id},${hash},bcrypt\n`);
  const files = ['--organizations', path.join(folder, 'organizations.csv'), '--passwords', exported];
  const { exited, written } = startMove(['--map', map, ...files], environment);
  expect(await exited, written.stderr).toBe(1);
  expect(written.stdout).toContain(`stays at Clerk: ${taken.id}: its address has another account there\n`);
  expect(written.stdout).toContain(`stays at Clerk: ${nameless.id}: it has no e-mail address\n`);
  expect(written.stdout).toContain(', 1 organizations moved, 2 stay at Clerk\n');

  expect(await signIn('ada@example.com', 'wrong horse')).toMatchObject({ status: 401 });
  const { status, headers } = await signIn('ada@example.com', 'correct horse');
  expect(status).toBe(200);
  const session = headers.getSetCookie().flatMap((line) => new RegExp(`^${COOKIE}=[^;]+`).exec(line) ?? []);
  const own = { cookie: session.join() };
  expect(await visit(own)).toBe(userId);
  expect(await account(own)).not.toContain(tenantId);
  const [member] =
    await rows(`UPDATE auth_sessions SET "activeOrganizationId" = o.id FROM auth_organizations o, auth_members m
    WHERE m."organizationId" = o.id AND m."userId" = auth_sessions."userId" RETURNING m.id, role`);
  expect(member).toMatchObject({ role: 'owner' });
  expect(await account(own)).toContain(tenantId);
  // The session still names the organization, but its user is no longer a member.
  await rows('DELETE FROM auth_members');
  expect(await account(own)).not.toContain(tenantId);
  expect(await visit(own)).toBe(userId);
});
