import { verifyToken } from '@clerk/backend';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { developmentBrowser } from './helpers/development-browser';
import { clerkFor, SECRET_KEY, startProvider } from './helpers/emulator';
import { bearer, errorOf } from './helpers/requests';
import { stopAfterAll } from './helpers/stop';

const provider = stopAfterAll(await startProvider());
const clerk = clerkFor(provider);

const get = (path: string) => fetch(provider.url + path, { headers: bearer(SECRET_KEY) });
function post(path: string, body: string | ReadableStream) {
  const headers = { ...bearer(SECRET_KEY), 'content-type': 'application/json' };
  const request = { method: 'POST', headers, body, duplex: 'half' };
  return fetch(provider.url + path, request);
}
async function postJson(path: string, fields: object) {
  const response = await post(path, JSON.stringify(fields));
  return z.looseObject({ id: z.string().optional() }).parse(await response.json());
}
const Users = z.array(z.object({ id: z.string(), created_at: z.int() }));

test('The webhook deliveries of a user can be read', async () => {
  const [ada] = ['ada', 'other'].map((name) => provider.createUser({ email: `${name}@events.example` }));
  const deliveries = provider.webhooks.list().filter(({ body }) => body.includes(ada?.id ?? 'nobody'));
  expect(deliveries).toMatchObject([{ type: 'user.created', status: 'pending' }]);
  expect(await (await get(`/v1/users/${ada?.id}/deliveries`)).json()).toEqual(deliveries);
  expect((await get('/v1/users/user_nobody/deliveries')).status).toBe(404);
});

test('The list of users has its first ten rows if the limit is below 1 or above 500', async () => {
  for (let index = 0; index < 11; index += 1) provider.createUser({ email: `${index}@limit.example` });
  const count = async (limit: number) =>
    (await clerk.users.getUserList({ limit, query: '@limit.example' })).data.length;
  expect(await Promise.all([-1, 500, 501].map(count))).toEqual([10, 11, 10]);
});

test('The list of users is filtered and sorted by creation times in microseconds, which a response rounds down', async () => {
  const ids = ['a', 'b', 'c'].map((name) => {
    const { id, createdAt } = provider.createUser({ email: `${name}@microsecond.example` });
    expect(Number.isInteger(createdAt)).toBe(false);
    return id;
  });
  const list = async (after: number) => {
    const query = `order_by=%2Bcreated_at&query=@microsecond.example&limit=3&created_at_after=${after}`;
    return Users.parse(await (await get(`/v1/users?${query}`)).json());
  };
  const users = await list(0);
  expect(users.map(({ id }) => id)).toEqual(ids);
  // The response contains the creation time rounded down. The stored time is later, so the user is in the list of users that
  // were created after the rounded time.
  expect((await list(users[2]?.created_at ?? 0)).map(({ id }) => id)).toContain(ids[2]);
});

test('Updated metadata is merged recursively, and replaced metadata is not', async () => {
  const { id } = provider.createUser({ email: 'metadata@example.com' });
  await clerk.users.replaceUserMetadata(id, { publicMetadata: { a: { b: 1, c: 2 }, d: 3 } });
  const merged = await clerk.users.updateUserMetadata(id, { publicMetadata: { a: { b: 5 }, d: null } });
  expect(merged.publicMetadata).toEqual({ a: { b: 5, c: 2 } });
  const replaced = await clerk.users.replaceUserMetadata(id, { publicMetadata: { e: 1 } });
  expect(replaced.publicMetadata).toEqual({ e: 1 });
});

test('The Backend API verifies a password', async () => {
  const { id } = provider.createUser({ email: 'secret@example.com', password: 'correct horse' });
  expect(await clerk.users.verifyPassword({ userId: id, password: 'correct horse' })).toEqual({
    verified: true,
  });
  const wrong = clerk.users.verifyPassword({ userId: id, password: 'wrong horse' });
  expect(await errorOf(wrong)).toEqual({ status: 422, code: 'incorrect_password', parameter: 'password' });
});

test('A request to create an invalid user gets a 422 that names the field', async () => {
  provider.createUser({ email: 'taken@example.com' });
  const taken = { emailAddress: ['TAKEN@example.com'], skipPasswordRequirement: true };
  const invalid: [Parameters<typeof clerk.users.createUser>[0], code: string, parameter?: string][] = [
    [taken, 'form_identifier_exists', 'email_address'],
    [{ emailAddress: ['w@example.com'], password: 'short' }, 'form_password_length_too_short', 'password'],
    [{}, 'form_param_missing', 'email_address'],
    [{ emailAddress: ['w@example.com'], skipPasswordRequirement: false }, 'form_data_missing'],
    [{ emailAddress: ['no address'] }, 'form_param_format_invalid', 'email_address'],
    [{ phoneNumber: ['0049'], skipPasswordRequirement: true }, 'form_param_format_invalid', 'phone_number'],
    [{ username: 'u', passwordDigest: 'x' }, 'form_param_missing', 'password_hasher'],
  ];
  for (const [user, code, parameter] of invalid) {
    expect(await errorOf(clerk.users.createUser(user))).toEqual({ status: 422, code, parameter });
  }
});

test('An importer creates a banned user with a creation time, several verified addresses and a phone number', async () => {
  const createdAt = new Date('2020-02-03T04:05:06.789Z');
  const fields = { username: 'importer', externalId: 'old-1', banned: true };
  const imported = await clerk.users.createUser({
    ...fields,
    emailAddress: ['First@import.example', 'second@import.example'],
    phoneNumber: ['+15555550100'],
    createdAt,
    skipPasswordRequirement: true,
    skipLegalChecks: true,
  });
  expect(imported).toMatchObject({ ...fields, createdAt: Number(createdAt) });
  expect(imported.emailAddresses.map((each) => each.emailAddress)).toEqual([
    'first@import.example',
    'second@import.example',
  ]);
  const verification = { status: 'verified' };
  expect(imported.primaryEmailAddress).toMatchObject({ emailAddress: 'first@import.example', verification });
  expect(imported.primaryPhoneNumber?.phoneNumber).toBe('+15555550100');
  const found = await clerk.users.getUserList({ emailAddress: ['second@import.example'] });
  expect([found.data.map(({ id }) => id), found.totalCount]).toEqual([[imported.id], 1]);
});

test('A user with a phone number or wallets needs no e-mail address, and a change selects the primary wallet', async () => {
  const create = (identifier: object) =>
    postJson('/v1/users', { ...identifier, skip_password_requirement: true });
  const byPhone = await create({ phone_number: ['+15555550101'] });
  expect(byPhone).toMatchObject({ object: 'user', primary_email_address_id: null });
  const { id = '', web3_wallets: wallets } = await create({ web3_wallet: ['0x1', '0x2'] });
  const [, second] = z.array(z.object({ id: z.string() })).parse(wallets);
  const changed = await clerk.users.updateUser(id, { primaryWeb3WalletID: second?.id ?? '' });
  expect(changed.primaryWeb3Wallet?.web3Wallet).toBe('0x2');
});

test('A user can keep, but not take, a user name and an external id', async () => {
  const taken = { username: 'holder', externalId: 'crm-2' };
  const holder = await clerk.users.createUser({ ...taken, skipPasswordRequirement: true });
  const other = provider.createUser({ email: 'other@unique.example' });
  expect(await clerk.users.updateUser(holder.id, taken)).toMatchObject(taken);
  for (const [parameter, change] of [
    ['username', { username: 'Holder' }],
    ['external_id', { externalId: 'crm-2' }],
  ] as const) {
    const created = { username: 'newest', ...change, skipPasswordRequirement: true };
    for (const call of [clerk.users.updateUser(other.id, change), clerk.users.createUser(created)]) {
      expect(await errorOf(call)).toEqual({ status: 422, code: 'form_identifier_exists', parameter });
    }
  }
  expect(provider.store.users.get(other.id)).toMatchObject({ username: null, externalId: null });
});

test.each([
  [
    'bcrypt',
    '$2b$04$nha5qSwKk3I0KkjTRkm0Y.yHeaoz7JI6vBfkRRpWY3fwhbPDj1qnC',
    undefined,
    'form_password_incorrect',
  ],
  ['argon2id', '$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA', 'hasher_not_emulated', 'hasher_not_emulated'],
] as const)(
  'A user with an imported %s digest signs in with the old password, or gets an error that says why not',
  async (passwordHasher, passwordDigest, code, wrongCode) => {
    const browser = await developmentBrowser(provider);
    const email = `${passwordHasher}@import.example`;
    await clerk.users.createUser({ emailAddress: [email], passwordDigest, passwordHasher });
    expect((await browser.signIn(email, { password: 'wrong' })).code).toBe(wrongCode);
    expect((await browser.signIn(email, { password: 'correct horse' })).code).toBe(code);
  },
);

test('The deletion of a user revokes the sessions of the user', async () => {
  const { id } = provider.createUser({ email: 'gone@example.com' });
  const session = provider.createSession(id);
  expect((await clerk.users.deleteUser(id)).id).toBe(id);
  expect((await errorOf(clerk.users.getUser(id))).status).toBe(404);
  expect((await clerk.sessions.getSession(session.id)).status).toBe('revoked');
  expect((await errorOf(clerk.sessions.getToken(session.id))).status).toBe(404);
});

test('A program and a request get an OAuth access token for a user, an audience and scopes', async () => {
  const { id: sub } = provider.createUser({ email: 'oauth@example.com' });
  const request = { audience: 'https://api.example/', scopes: ['read', 'write'] };
  const { jwt } = await postJson(`/v1/users/${sub}/oauth_token`, { ...request, client_id: 'client_1' });
  for (const token of [String(jwt), provider.oauthToken(sub, { ...request, clientId: 'client_1' })]) {
    const key = { jwtKey: provider.publicKeyPem, headerType: ['at+jwt'] };
    const claims = {
      aud: request.audience,
      client_id: 'client_1',
      iss: provider.url,
      scope: 'read write',
      sub,
    };
    expect(await verifyToken(token, key)).toMatchObject({ ...claims, jti: expect.stringMatching(/^oat_/) });
  }
  expect(() => provider.oauthToken('user_nobody')).toThrow('user_nobody');
});

test('The SDK verifies a session token of the emulator with the key from the JWKS and with the PEM key', async () => {
  const { id } = provider.createUser({ email: 'token@example.com' });
  const session = provider.createSession(id);
  provider.store.sessions.put({ ...session, createdAt: session.createdAt - 120_000 });
  const { jwt } = await clerk.sessions.getToken(session.id);
  for (const by of [{ secretKey: SECRET_KEY, apiUrl: provider.url }, { jwtKey: provider.publicKeyPem }]) {
    const claims = await verifyToken(jwt, by);
    expect(claims).toMatchObject({ sub: id, sid: session.id, iss: provider.issuer, v: 2, fva: [2, -1] });
    expect([claims.exp - claims.iat, claims.iat - claims.nbf]).toEqual([60, 10]);
  }
  const long = await clerk.sessions.getToken(session.id, undefined, 3600);
  const claims = await verifyToken(long.jwt, { jwtKey: provider.publicKeyPem });
  expect(claims.exp - claims.iat).toBe(3600);
});

test('The Backend API lists sessions by user and status', async () => {
  const { id } = provider.createUser({ email: 'sessions@example.com' });
  const first = await clerk.sessions.createSession({ userId: id });
  const second = await clerk.sessions.createSession({ userId: id });
  expect((await clerk.sessions.revokeSession(first.id)).status).toBe('revoked');
  const active = await clerk.sessions.getSessionList({ userId: id, status: 'active' });
  expect(active.data.map((session) => session.id)).toEqual([second.id]);
  expect(active.totalCount).toBe(1);
});

test('A Backend API request without the right secret key gets a 401', async () => {
  const rejected = await errorOf(clerkFor(provider, 'sk_test_other').users.getUserList());
  expect(rejected).toMatchObject({ status: 401, code: 'clerk_key_invalid' });
  expect((await fetch(`${provider.url}/v1/users`)).status).toBe(401);
});

test('The settings of a user are stored, each response contains them, and an invalid one has a short and a long message', async () => {
  const { id } = provider.createUser({ email: 'settings@example.com', lastName: 'Name' });
  const place = { locale: 'fr-FR', timezone: 'Europe/Paris' };
  const settings = { ...place, deleteSelfEnabled: false, createOrganizationsLimit: 3 };
  await clerk.users.updateUser(id, { ...settings, legalAcceptedAt: new Date(1000) });
  await clerk.users.updateUser(id, { createOrganizationEnabled: false });
  const saved = { ...settings, lastName: 'Name', legalAcceptedAt: 1000, createOrganizationEnabled: false };
  expect(await clerk.users.getUser(id)).toMatchObject(saved);
  const { errors } = await postJson('/v1/users', { delete_self_enabled: 'no' });
  expect(errors).toMatchObject([
    { message: 'is invalid', long_message: expect.stringContaining('delete_self_enabled is invalid') },
  ]);
});

test('The Backend API adds, verifies and deletes e-mail addresses, and sets the primary one', async () => {
  const { id: userId } = provider.createUser({ email: 'one@addresses.example' });
  const { emailAddresses, users } = clerk;
  const added = await emailAddresses.createEmailAddress({ userId, emailAddress: 'two@addresses.example' });
  expect(added.verification?.status).toBe('unverified');
  const setPrimary = () => users.updateUser(userId, { primaryEmailAddressID: added.id });
  expect(await errorOf(setPrimary())).toMatchObject({ status: 422, parameter: 'primary_email_address_id' });
  expect((await emailAddresses.updateEmailAddress(added.id, { verified: true })).verification?.status).toBe(
    'verified',
  );
  expect((await setPrimary()).primaryEmailAddress?.emailAddress).toBe('two@addresses.example');
  expect(provider.store.users.get(userId)?.email).toBe('two@addresses.example');
  await emailAddresses.deleteEmailAddress(added.id);
  expect(await errorOf(emailAddresses.getEmailAddress(added.id))).toMatchObject({ status: 404 });
  const taken = emailAddresses.createEmailAddress({ userId, emailAddress: 'one@addresses.example' });
  expect(await errorOf(taken)).toMatchObject({ status: 422, code: 'form_identifier_exists' });
});

test('An actor signs in as a user with an actor token, which can be revoked', async () => {
  const { id: userId } = provider.createUser({ email: 'user@actor.example' });
  const actor = { sub: provider.createUser({ email: 'admin@actor.example' }).id };
  const create = () => clerk.actorTokens.create({ userId, actor, sessionMaxDurationInSeconds: 60 });
  const nobody = clerk.actorTokens.create({ userId: 'user_nobody', actor });
  expect(await errorOf(nobody)).toMatchObject({ status: 422, parameter: 'user_id' });
  const { url } = await create();
  const link = await fetch(url ?? '', { redirect: 'manual' });
  const page = new URL(link.headers.get('location') ?? '');
  expect([page.pathname, page.searchParams.get('__clerk_status')]).toEqual(['/sign-in', 'sign_in']);
  const ticket = page.searchParams.get('__clerk_ticket') ?? '';
  const browser = await developmentBrowser(provider);
  await browser.call('POST', '/v1/client/sign_ins', { strategy: 'ticket', ticket });
  const session = provider.store.sessions.find((each) => each.userId === userId);
  expect(session).toMatchObject({ actor, expireAt: (session?.createdAt ?? 0) + 60_000 });
  const { jwt } = await clerk.sessions.getToken(session?.id ?? '');
  expect(await verifyToken(jwt, { jwtKey: provider.publicKeyPem })).toMatchObject({ act: actor });
  expect((await clerk.actorTokens.revoke((await create()).id)).status).toBe('revoked');
});

test('A session token is valid for 30 seconds at least, and `null` selects the default', async () => {
  const { id } = provider.createSession(provider.createUser({ email: 'seconds@example.com' }).id);
  expect(await postJson(`/v1/sessions/${id}/tokens`, { expires_in_seconds: 29 })).toHaveProperty('errors');
  expect(await postJson(`/v1/sessions/${id}/tokens`, { expires_in_seconds: null })).toHaveProperty('jwt');
});

const TOO_LARGE = 'x'.repeat(65_537);

test.each([
  ['larger than 64 KiB gets a 413', TOO_LARGE, 413, 'request_body_too_large'],
  [
    'of unknown length above 64 KiB gets a 413',
    new Blob([TOO_LARGE]).stream(),
    413,
    'request_body_too_large',
  ],
  ['that is not a JSON object gets a 400', '{', 400, 'request_body_invalid'],
])('A body %s', async (_, body, status, code) => {
  const response = await post('/v1/users', body);
  expect(response.status).toBe(status);
  expect(await response.json()).toMatchObject({ errors: [{ code }] });
});
