import { createClerkClient, verifyToken } from '@clerk/backend';
import { isClerkAPIResponseError } from '@clerk/nextjs/errors';
import { expect, test } from 'vitest';
import { startProvider } from '../harness/identity-provider';
import { bearer, tokenFor } from '../harness/requests';
import { SECRET_KEY } from '../harness/service';
import { stopAfterAll, stopAfterTest } from '../vitest/stop-after-all';

const provider = stopAfterAll(await startProvider());
const clientWith = (secretKey: string) =>
  createClerkClient({ secretKey, apiUrl: provider.url, telemetry: { disabled: true } });
const clerk = clientWith(SECRET_KEY);

async function failure(call: Promise<unknown>) {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!isClerkAPIResponseError(error))
    throw new Error('The call did not fail as the SDK fails', { cause: error });
  return { status: error.status, code: error.errors[0]?.code, parameter: error.errors[0]?.meta?.paramName };
}

test('a user that the SDK creates is found by id, by address and in the list', async () => {
  const created = await clerk.users.createUser({
    emailAddress: ['Ada@Example.com'],
    password: 'correct horse',
    firstName: 'Ada',
    externalId: 'crm-1',
    publicMetadata: { plan: 'pro' },
  });

  expect(created.primaryEmailAddress?.emailAddress).toBe('ada@example.com');
  expect(created.primaryEmailAddress?.verification?.status).toBe('verified');
  expect(created.passwordEnabled).toBe(true);
  expect((await clerk.users.getUser(created.id)).externalId).toBe('crm-1');
  const byEmail = await clerk.users.getUserList({ emailAddress: ['ADA@example.com'] });
  expect(byEmail.data.map((user) => user.id)).toEqual([created.id]);
  expect(byEmail.totalCount).toBe(1);
  expect((await clerk.users.getUserList({ emailAddress: ['nobody@example.com'] })).data).toEqual([]);
  await clerk.users.deleteUser(created.id);
});

test('with the secret key, and only with it, one reads what became of the events about a user', async () => {
  const [ada, other] = ['ada', 'other'].map((name) =>
    provider.createUser({ email: `${name}@events.example` }),
  );
  const ask = (id = '', key = SECRET_KEY) =>
    fetch(`${provider.url}/v1/users/${id}/deliveries`, { headers: bearer(key) });
  const own = provider.webhooks.list().filter(({ body }) => body.includes(ada?.id ?? 'nobody'));
  expect(own.map(({ type, status }) => ({ type, status }))).toEqual([
    { type: 'user.created', status: 'pending' },
  ]);
  expect(await (await ask(ada?.id)).json()).toEqual(own);
  expect((await ask(other?.id, 'sk_test_another')).status).toBe(401);
  expect((await ask('user_nobody')).status).toBe(404);
});

test('the list is newest first, in pages, and the count covers all of it', async () => {
  const before = await clerk.users.getCount();
  for (const name of ['one', 'two', 'three']) {
    provider.createUser({ email: `${name}@page.example`, firstName: name });
  }
  const namesFrom = async (offset: number) => {
    const query = { limit: 2, offset, orderBy: '-first_name', query: '@page.example' } as const;
    return (await clerk.users.getUserList(query)).data.map((user) => user.firstName);
  };
  expect(await namesFrom(0)).toEqual(['two', 'three']);
  expect(await namesFrom(2)).toEqual(['one']);
  expect(await clerk.users.getCount()).toBe(before + 3);
});

test('an update changes only what it names, and metadata is merged deeply', async () => {
  const { id } = provider.createUser({ email: 'change@example.com', firstName: 'Old', lastName: 'Name' });
  expect(await clerk.users.updateUser(id, { firstName: 'New' })).toMatchObject({
    firstName: 'New',
    lastName: 'Name',
  });
  await clerk.users.replaceUserMetadata(id, { publicMetadata: { a: { b: 1, c: 2 }, d: 3 } });
  const merged = await clerk.users.updateUserMetadata(id, { publicMetadata: { a: { b: 5 }, d: null } });
  expect(merged.publicMetadata).toEqual({ a: { b: 5, c: 2 } });
  const replaced = await clerk.users.replaceUserMetadata(id, { publicMetadata: { e: 1 } });
  expect(replaced.publicMetadata).toEqual({ e: 1 });
});

test('a password is checked by its hash', async () => {
  const { id } = provider.createUser({ email: 'secret@example.com', password: 'correct horse' });
  expect(await clerk.users.verifyPassword({ userId: id, password: 'correct horse' })).toEqual({
    verified: true,
  });
  expect(await failure(clerk.users.verifyPassword({ userId: id, password: 'wrong horse' }))).toEqual({
    status: 422,
    code: 'incorrect_password',
    parameter: 'password',
  });
});

test('a user without a password is refused, unless the call says that none is required', async () => {
  const emailAddress = ['without@example.com'];
  for (const requirement of [{}, { skipPasswordRequirement: false }]) {
    const refused = clerk.users.createUser({ emailAddress, ...requirement });
    expect(await failure(refused)).toMatchObject({ status: 422, code: 'form_data_missing' });
  }
  const created = await clerk.users.createUser({ emailAddress, skipPasswordRequirement: true });
  expect(created.passwordEnabled).toBe(false);
});

test('a taken address, a weak password, a missing address and an unknown field are refused by name', async () => {
  provider.createUser({ email: 'taken@example.com' });
  const taken = { emailAddress: ['TAKEN@example.com'], skipPasswordRequirement: true };
  const refusals: [Parameters<typeof clerk.users.createUser>[0], code: string, parameter: string][] = [
    [taken, 'form_identifier_exists', 'email_address'],
    [{ emailAddress: ['w@example.com'], password: 'short' }, 'form_password_length_too_short', 'password'],
    [{}, 'form_param_missing', 'email_address'],
    [{ emailAddress: ['no address'] }, 'form_param_format_invalid', 'email_address'],
    [{ emailAddress: ['u@example.com'], username: 'u' }, 'form_param_unknown', 'username'],
  ];
  for (const [user, code, parameter] of refusals) {
    expect(await failure(clerk.users.createUser(user))).toEqual({ status: 422, code, parameter });
  }
});

test('a deleted user is gone, with the sessions', async () => {
  const { id } = provider.createUser({ email: 'gone@example.com' });
  const session = provider.createSession(id);
  expect((await clerk.users.deleteUser(id)).id).toBe(id);
  expect((await failure(clerk.users.getUser(id))).status).toBe(404);
  expect((await clerk.sessions.getSession(session.id)).status).toBe('revoked');
  expect((await failure(clerk.sessions.getToken(session.id))).status).toBe(404);
});

test('a session token of the SDK is verified by the SDK, by JWKS and by PEM', async () => {
  const { id } = provider.createUser({ email: 'token@example.com' });
  const session = await clerk.sessions.createSession({ userId: id });
  const { jwt } = await clerk.sessions.getToken(session.id);

  for (const by of [{ secretKey: SECRET_KEY, apiUrl: provider.url }, { jwtKey: provider.publicKeyPem }]) {
    const claims = await verifyToken(jwt, by);
    expect(claims).toMatchObject({ sub: id, sid: session.id, iss: provider.issuer, v: 2 });
    expect(claims.exp - claims.iat).toBe(60);
  }
  const long = await clerk.sessions.getToken(session.id, undefined, 3600);
  const claims = await verifyToken(long.jwt, { jwtKey: provider.publicKeyPem });
  expect(claims.exp - claims.iat).toBe(3600);
});

test('a token with another signature, algorithm or time is refused by the SDK', async () => {
  const other = stopAfterTest(await startProvider());
  const verified = (token: string) => verifyToken(token, { jwtKey: provider.publicKeyPem });
  const late = { exp: Math.floor(Date.now() / 1000) - 6 };

  await expect(verified(tokenFor(provider, 'user_1'))).resolves.toMatchObject({ sub: 'user_1' });
  await expect(verified(tokenFor(other, 'user_1'))).rejects.toThrow(/signature/i);
  for (const alg of ['none', 'HS256']) {
    await expect(verified(tokenFor(provider, 'user_1', {}, { header: { alg } }))).rejects.toThrow();
  }
  await expect(verified(tokenFor(provider, 'user_1', late))).rejects.toThrow(/expired/i);
});

test('sessions are listed by user and status, and a revoked one gives no token', async () => {
  const { id } = provider.createUser({ email: 'sessions@example.com' });
  const first = await clerk.sessions.createSession({ userId: id });
  const second = await clerk.sessions.createSession({ userId: id });
  expect((await clerk.sessions.revokeSession(first.id)).status).toBe('revoked');
  const active = await clerk.sessions.getSessionList({ userId: id, status: 'active' });
  expect(active.data.map((session) => session.id)).toEqual([second.id]);
  expect(active.totalCount).toBe(1);
  expect(await failure(clerk.sessions.getToken(first.id))).toMatchObject({ status: 404 });
});

test('nothing is answered without the secret key', async () => {
  const refused = await failure(clientWith('sk_test_other').users.getUserList());
  expect(refused).toMatchObject({ status: 401, code: 'clerk_key_invalid' });
  expect((await fetch(`${provider.url}/v1/users`)).status).toBe(401);
});

test('an unknown path, a body too large and broken JSON get errors of the provider’s form', async () => {
  const call = (path: string, body: string) =>
    fetch(`${provider.url}${path}`, {
      method: 'POST',
      headers: { ...bearer(SECRET_KEY), 'content-type': 'application/json' },
      body,
    });
  expect((await call('/v1/organizations', '{}')).status).toBe(404);
  expect((await call('/v1/users', 'x'.repeat(70_000))).status).toBe(413);
  const broken = await call('/v1/users', '{');
  expect(broken.status).toBe(400);
  expect(await broken.json()).toMatchObject({ errors: [{ code: 'request_body_invalid' }] });
});
