import { decodeJwt } from '@clerk/backend/jwt';
import { expect, test } from 'vitest';
import { developmentBrowser, EMAIL, PASSWORD, startWithUser } from './helpers/development-browser';

async function start(options: Parameters<typeof startWithUser>[0] = {}) {
  const started = await startWithUser(options);
  const claims = (sessionId = '') => decodeJwt(started.provider.sessionToken(sessionId)).payload;
  return { ...started, claims };
}

test('A sign-in activates the organization of the last session, and at first the one joined last', async () => {
  const { provider, user, enter, claims } = await start();
  const [first, last] = ['First', 'Last'].map((name) =>
    provider.createOrganization({ name, createdBy: user.id }),
  );
  const browser = await enter();
  expect(claims(browser.session?.id)).toMatchObject({ o: { id: last?.id } });
  const path = `/v1/client/sessions/${browser.session?.id}/touch`;
  await browser.call('POST', path, { active_organization_id: first?.id ?? '' });
  expect((await enter()).session?.organizationId).toBe(first?.id);
  const none = await start({ activeOrganization: 'none' });
  none.provider.createOrganization({ name: 'First', createdBy: none.user.id });
  expect((await none.enter()).session?.organizationId).toBeNull();
});

test('With organizationRequired, a session without an organization is pending in both APIs and in its token', async () => {
  const { provider, user, enter, claims, clerk } = await start({ organizationRequired: true });
  const { sessions } = clerk;
  const browser = await enter();
  const id = browser.session?.id ?? '';
  const path = `/v1/client/sessions/${id}`;
  expect((await browser.call('GET', path)).body).toMatchObject({
    response: { status: 'pending', tasks: [{ key: 'choose-organization' }] },
  });
  expect(await sessions.getSession(id)).toMatchObject({ status: 'pending' });
  expect((await sessions.getSessionList({ status: 'pending', userId: user.id })).totalCount).toBe(1);
  expect(claims(id)).toMatchObject({ sts: 'pending' });
  const organization = provider.createOrganization({ name: 'Acme', createdBy: user.id });
  await browser.call('POST', `${path}/touch`, { active_organization_id: organization.id });
  expect(await sessions.getSession(id)).toMatchObject({ status: 'active' });
  expect(claims(id)).toMatchObject({ sts: 'active' });
});

test('Custom roles reach the session token, and decide what a member may change', async () => {
  const roles = {
    'org:admin': ['org:posts:read', 'org:billing:manage'],
    'org:editor': ['org:posts:read', 'org:sys_profile:manage'],
  };
  const { provider, user, enter, claims } = await start({ roles });
  const { id } = provider.createOrganization({ name: 'Acme', createdBy: user.id });
  const browser = await enter();
  expect(claims(browser.session?.id)).toMatchObject({
    fea: 'o:billing,o:posts',
    o: { id, rol: 'admin', per: 'manage,read', fpm: '1,2' },
  });
  const [membership] = provider.store.memberships.all();
  if (membership) provider.store.memberships.put({ ...membership, role: 'org:editor' });
  const rename = await browser.call('PATCH', `/v1/organizations/${id}`, { name: 'New' });
  expect(rename.status).toBe(200);
  expect(await browser.call('DELETE', `/v1/organizations/${id}`)).toMatchObject({
    status: 403,
    code: 'missing_permission',
  });
});

test('A browser merges unsafe metadata, and replaces it only with an API version up to 2025-11-10', async () => {
  const { provider, user, enter } = await start();
  const browser = await enter();
  const metadata = () => provider.store.users.get(user.id)?.unsafeMetadata;
  const patch = (path: string, value: object) =>
    browser.call('PATCH', path, { unsafe_metadata: JSON.stringify(value) });
  await patch('/v1/me?__clerk_api_version=2025-11-10', { a: { b: 1, c: 2 }, d: 3 });
  await patch('/v1/me/metadata', { a: { c: null, e: 4 } });
  expect(metadata()).toEqual({ a: { b: 1, e: 4 }, d: 3 });
  const late = await patch('/v1/me?__clerk_api_version=2026-05-12', {});
  expect(late).toMatchObject({ status: 422, code: 'form_param_unknown' });
});

test('A second address signs in after its verification, and can be the primary one', async () => {
  const { provider, user, enter } = await start();
  const browser = await enter();
  const second = 'second+clerk_test@example.com';
  const path = '/v1/me/email_addresses';
  const id = (await browser.call('POST', `${path}/`, { email_address: second })).response?.id ?? '';
  const other = await developmentBrowser(provider);
  expect((await other.signIn(second)).code).toBe('form_identifier_not_found');
  const primary = () => browser.call('PATCH', '/v1/me', { primary_email_address_id: id });
  expect((await primary()).status).toBe(422);
  await browser.call('POST', `${path}/${id}/prepare_verification`, { strategy: 'email_code' });
  const attempt = (code: string) => browser.call('POST', `${path}/${id}/attempt_verification`, { code });
  expect((await attempt('000000')).code).toBe('form_code_incorrect');
  expect((await attempt('424242')).status).toBe(200);
  expect((await primary()).status).toBe(200);
  expect(provider.store.users.get(user.id)?.email).toBe(second);
  expect((await other.signIn(second, { password: PASSWORD })).response?.status).toBe('complete');
  expect((await browser.call('DELETE', `${path}/${id}`)).status).toBe(200);
  expect(provider.store.users.get(user.id)?.email).toBe(EMAIL);
  const [last] = provider.store.users.get(user.id)?.emails ?? [];
  const removed = await browser.call('DELETE', `${path}/${last?.id}`);
  expect(removed.code).toBe('last_identification_deletion_failed');
});

test('A sign-up takes an identifier of either kind and the legal terms, and continues with a social provider', async () => {
  const settings = { phoneNumbers: true, socialProviders: ['google'], verifyEmailAtSignUp: false };
  const { provider } = await start(settings);
  const browser = await developmentBrowser(provider);
  const phone = '+12015550123';
  const form = { email_address_or_phone_number: phone, legal_accepted: 'true' };
  const begun = await browser.call('POST', '/v1/client/sign_ups', form);
  const path = `/v1/client/sign_ups/${begun.response?.id}`;
  const strategy = { strategy: 'oauth_google', redirect_url: 'http://localhost:3000/' };
  const waiting = await browser.send('PATCH', path, strategy);
  const { external_account: external } = (await waiting.json()).response.verifications;
  const body = new URLSearchParams({ email: 'new@example.com' });
  await fetch(external.external_verification_redirect_url, { method: 'POST', body, redirect: 'manual' });
  await browser.call('POST', `${path}/prepare_verification`, { strategy: 'phone_code' });
  const code = { strategy: 'phone_code', code: '424242' };
  expect((await browser.call('POST', `${path}/attempt_verification`, code)).response?.status).toBe(
    'complete',
  );
  expect(provider.store.users.all().at(-1)).toMatchObject({
    email: 'new@example.com',
    phones: [{ value: phone }],
    externalAccounts: [{ provider: 'google' }],
    settings: { legal_accepted_at: expect.any(Number) },
  });
});

test('With multiSession, two users are signed in, and the one that was active last gets the handshake', async () => {
  let time = Date.now();
  const clock = { now: () => ++time, after: () => () => undefined };
  const { provider, enter } = await start({ multiSession: true, usernames: true, clock });
  const browser = await enter();
  const form = { email_address: 'b+clerk_test@example.com', password: PASSWORD, username: 'grace' };
  const signUp = (await browser.call('POST', '/v1/client/sign_ups', form)).response?.id;
  const path = `/v1/client/sign_ups/${signUp}`;
  await browser.call('POST', `${path}/prepare_verification`, { strategy: 'email_code' });
  const done = await browser.call('POST', `${path}/attempt_verification`, { code: '424242' });
  expect(done.client?.sessions).toHaveLength(2);
  await browser.call('POST', `/v1/client/sessions/${browser.session?.id}/touch`);
  const { body } = await browser.call('GET', '/v1/client');
  expect(body).toMatchObject({ response: { last_active_session_id: browser.session?.id } });
  const again = await browser.signIn(EMAIL, { password: PASSWORD });
  expect(again).toMatchObject({ status: 400, code: 'identifier_already_signed_in' });
  expect(again.body).toMatchObject({ errors: [{ meta: { session_id: browser.session?.id } }] });
  const other = await developmentBrowser(provider);
  expect((await other.signIn('grace', { password: PASSWORD })).response?.status).toBe('complete');
});

test.each(['password', 'email_code'])('A signed-in user is verified again by %s', async (strategy) => {
  const { provider, enter, claims } = await start();
  const browser = await enter();
  const id = browser.session?.id ?? '';
  const session = provider.store.sessions.get(id);
  if (session) provider.store.sessions.put({ ...session, createdAt: Date.now() - 10 * 60_000 });
  expect(claims(id)).toMatchObject({ fva: [10, -1] });
  const path = `/v1/client/sessions/${id}/verify`;
  const begun = await browser.call('POST', path, { level: 'first_factor' });
  expect(begun.response?.status).toBe('needs_first_factor');
  if (strategy === 'email_code') await browser.call('POST', `${path}/prepare_first_factor`, { strategy });
  const secret = { strategy, password: PASSWORD, code: '424242' };
  const done = await browser.call('POST', `${path}/attempt_first_factor`, secret);
  expect(done.response?.status).toBe('complete');
  expect(claims(id)).toMatchObject({ fva: [0, -1] });
});
