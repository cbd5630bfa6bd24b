import { createClerkClient } from '@clerk/backend';
import { expect, test } from 'vitest';
import { z } from 'zod';
import type { EmulatorOptions } from '../src/emulator';
import { developmentBrowser } from './helpers/development-browser';
import { SECRET_KEY, startProvider } from './helpers/emulator';
import { stopAfterTest } from './helpers/stop';

const EMAIL = 'ada@example.com';
const PASSWORD = 'correct horse';

async function start(options: Partial<EmulatorOptions> = {}) {
  const provider = stopAfterTest(await startProvider(options));
  const user = provider.createUser({ email: EMAIL, password: PASSWORD });
  const browser = await developmentBrowser(provider);
  /** Returns the code that was emailed last. */
  const mailedCode = () => provider.store.mails.all().at(-1)?.code ?? '';
  return { provider, user, browser, mailedCode };
}

test('With client trust, a password sign-in requires an emailed code only if the user has not signed in with this browser before', async () => {
  const { provider, user, browser, mailedCode } = await start({ clientTrust: true });
  const begun = await browser.signIn(EMAIL, { password: PASSWORD });
  expect(begun.body).toMatchObject({
    response: {
      status: 'needs_client_trust',
      client_trust_state: 'new',
      supported_second_factors: [{ strategy: 'email_code', safe_identifier: EMAIL }],
      first_factor_verification: { status: 'verified' },
      created_session_id: null,
    },
    client: { sessions: [] },
  });
  const path = `/v1/client/sign_ins/${begun.response?.id}`;
  await browser.call('POST', `${path}/prepare_second_factor`, { strategy: 'email_code' });
  expect(provider.store.mails.all().at(-1)).toMatchObject({ to: EMAIL, purpose: 'new device' });
  const code = mailedCode();
  const attempt = (text: string) =>
    browser.call('POST', `${path}/attempt_second_factor`, { strategy: 'email_code', code: text });
  expect((await attempt(code === '000000' ? '000001' : '000000')).code).toBe('form_code_incorrect');
  const done = await attempt(code);
  expect(done.body).toMatchObject({
    response: { status: 'complete', second_factor_verification: { status: 'verified' } },
  });
  expect(provider.store.sessions.get(done.response?.created_session_id ?? '')?.userId).toBe(user.id);

  await browser.call('DELETE', '/v1/client/sessions');
  const again = await browser.signIn(EMAIL, { password: PASSWORD });
  expect(again.body).toMatchObject({ response: { status: 'complete', client_trust_state: 'known' } });
});

test('An instance with client trust requires no second factor in a new browser if the first factor is an emailed code', async () => {
  const { browser, mailedCode } = await start({ clientTrust: true });
  const begun = await browser.signIn(EMAIL, { strategy: 'email_code' });
  expect(begun.body).toMatchObject({ response: { client_trust_state: 'new' } });
  const path = `/v1/client/sign_ins/${begun.response?.id}`;
  const done = await browser.call('POST', `${path}/attempt_first_factor`, {
    strategy: 'email_code',
    code: mailedCode(),
  });
  expect(done.response?.status).toBe('complete');
});

test('A request for a second factor gets a 400 if the sign-in does not need a second factor', async () => {
  const { browser } = await start();
  const begun = await browser.signIn(EMAIL);
  const path = `/v1/client/sign_ins/${begun.response?.id}/prepare_second_factor`;
  const rejected = await browser.call('POST', path, { strategy: 'email_code' });
  expect(rejected).toMatchObject({ status: 400, code: 'resource_forbidden' });
});

/** Returns the minutes since the user verified the first factor, according to a session token and to the session itself. */
async function factorAges(browser: Awaited<ReturnType<typeof developmentBrowser>>, session: string) {
  const Age = z.object({
    response: z.object({ factor_verification_age: z.tuple([z.number(), z.number()]) }),
  });
  const { response } = Age.parse((await browser.call('GET', session)).body);
  const { jwt } = z.object({ jwt: z.string() }).parse((await browser.call('POST', `${session}/tokens`)).body);
  const claims: unknown = JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString());
  return [z.object({ fva: z.array(z.number()) }).parse(claims).fva[0], response.factor_verification_age[0]];
}

test('A reverification by the password or by an emailed code resets the age of the first factor of a session', async () => {
  let time = Date.now();
  const clock = { now: () => time, after: () => () => undefined };
  const { provider, browser, mailedCode } = await start({ clock });
  const { response } = await browser.signIn(EMAIL, { password: PASSWORD });
  const session = `/v1/client/sessions/${response?.created_session_id}`;
  const verify = (step: string, fields: Record<string, string>) =>
    browser.call('POST', `${session}/verify${step}`, fields);
  time += 20 * 60_000;
  expect(await factorAges(browser, session)).toEqual([20, 20]);

  const unstarted = await verify('/attempt_first_factor', { strategy: 'password', password: PASSWORD });
  expect(unstarted).toMatchObject({ status: 400, code: 'resource_forbidden' });
  const started = await verify('', { level: 'multi_factor' });
  expect(started.body).toMatchObject({
    response: {
      level: 'first_factor',
      status: 'needs_first_factor',
      supported_first_factors: [{ strategy: 'password' }, { strategy: 'email_code', safe_identifier: EMAIL }],
      supported_second_factors: null,
    },
  });
  const wrong = await verify('/attempt_first_factor', { strategy: 'password', password: 'wrong horse' });
  expect(wrong).toMatchObject({ status: 422, code: 'form_password_incorrect' });
  expect(await factorAges(browser, session)).toEqual([20, 20]);
  const byPassword = await verify('/attempt_first_factor', { strategy: 'password', password: PASSWORD });
  expect(byPassword.response?.status).toBe('complete');
  expect(await factorAges(browser, session)).toEqual([0, 0]);

  time += 20 * 60_000;
  await verify('', { level: 'first_factor' });
  await verify('/prepare_first_factor', { strategy: 'email_code' });
  expect(provider.store.mails.all().at(-1)).toMatchObject({ to: EMAIL, purpose: 'reverification' });
  const byCode = await verify('/attempt_first_factor', { strategy: 'email_code', code: mailedCode() });
  expect(byCode.response?.status).toBe('complete');
  expect(await factorAges(browser, session)).toEqual([0, 0]);
});

test('With the option `reverification`, sensitive operations require a first factor that is at most 10 minutes old', async () => {
  let time = Date.now();
  const clock = { now: () => time, after: () => () => undefined };
  const { provider, user, browser } = await start({ clock, reverification: true });
  expect((await browser.call('GET', '/v1/environment')).body).toMatchObject({
    auth_config: { reverification: true },
  });
  const { response } = await browser.signIn(EMAIL, { password: PASSWORD });
  const session = `/v1/client/sessions/${response?.created_session_id}`;
  const change = () => browser.call('POST', '/v1/me/change_password', { new_password: 'another horse' });
  expect((await change()).status).toBe(200);
  time += 11 * 60_000;
  const rejected = { status: 403, code: 'session_reverification_required' };
  expect(await change()).toMatchObject(rejected);
  expect(await browser.call('DELETE', '/v1/me')).toMatchObject(rejected);
  const other = provider.createSession(user.id).id;
  expect(await browser.call('POST', `/v1/me/sessions/${other}/revoke`)).toMatchObject(rejected);
  expect(provider.store.users.get(user.id)).toBeDefined();

  await browser.call('POST', `${session}/verify`, { level: 'first_factor' });
  await browser.call('POST', `${session}/verify/attempt_first_factor`, {
    strategy: 'password',
    password: 'another horse',
  });
  expect((await browser.call('DELETE', '/v1/me')).status).toBe(200);
  expect(provider.store.users.get(user.id)).toBeUndefined();
});

const clerkFor = ({ url }: { readonly url: string }) =>
  createClerkClient({ secretKey: SECRET_KEY, apiUrl: url, telemetry: { disabled: true } });

test('On an instance with client trust, a sign-in token is valid once and needs no second factor in a new browser', async () => {
  const { provider, user, browser } = await start({ clientTrust: true });
  const { signInTokens } = clerkFor(provider);
  const { token } = await signInTokens.createSignInToken({ userId: user.id, expiresInSeconds: 60 });
  const enter = (ticket: string) =>
    browser.call('POST', '/v1/client/sign_ins', { strategy: 'ticket', ticket });
  const done = await enter(token);
  expect(done.body).toMatchObject({
    response: {
      status: 'complete',
      first_factor_verification: { object: 'verification_ticket', status: 'verified', strategy: 'ticket' },
    },
    client: { last_authentication_strategy: 'ticket' },
  });
  expect(provider.store.sessions.get(done.response?.created_session_id ?? '')?.userId).toBe(user.id);
  await browser.call('DELETE', '/v1/client/sessions');
  expect(await enter(token)).toMatchObject({ status: 400, code: 'sign_in_token_already_used_code' });
});

test('The emulator rejects unknown, revoked and expired sign-in tokens, a second revocation, and the creation of a token for an unknown user', async () => {
  let time = Date.now();
  const clock = { now: () => time, after: () => () => undefined };
  const { provider, user, browser } = await start({ clock });
  const { signInTokens } = clerkFor(provider);
  const create = () => signInTokens.createSignInToken({ userId: user.id, expiresInSeconds: 60 });
  const enter = async (ticket: string) =>
    (await browser.call('POST', '/v1/client/sign_ins', { strategy: 'ticket', ticket })).code;

  expect(await enter('ticket_unknown')).toBe('ticket_invalid_code');
  const revoked = await signInTokens.revokeSignInToken((await create()).id);
  expect(revoked.status).toBe('revoked');
  expect(await enter(revoked.token)).toBe('sign_in_token_revoked_code');
  await expect(signInTokens.revokeSignInToken(revoked.id)).rejects.toMatchObject({ status: 400 });
  const late = await create();
  time += 60_000;
  expect(await enter(late.token)).toBe('ticket_expired_code');
  await expect(
    signInTokens.createSignInToken({ userId: 'user_unknown', expiresInSeconds: 60 }),
  ).rejects.toMatchObject({ status: 404 });
});

test('An invitation ticket is valid once, verifies the invited address and gives the new user the public metadata of the invitation', async () => {
  const { provider, browser } = await start();
  const { invitations } = clerkFor(provider);
  const emailAddress = 'invited@example.com';
  const invitation = await invitations.createInvitation({
    emailAddress,
    publicMetadata: { plan: 'pro' },
    redirectUrl: 'http://localhost:3000/sign-up',
  });
  expect((await invitations.getInvitationList()).data.map(({ id }) => id)).toEqual([invitation.id]);
  const again = invitations.createInvitation({ emailAddress });
  await expect(again).rejects.toMatchObject({ status: 400, errors: [{ code: 'duplicate_record' }] });

  const link = await fetch(invitation.url ?? '', { redirect: 'manual' });
  const page = new URL(link.headers.get('location') ?? '');
  expect(page.origin + page.pathname).toBe('http://localhost:3000/sign-up');
  expect(page.searchParams.get('__clerk_status')).toBe('sign_up');
  const ticket = page.searchParams.get('__clerk_ticket') ?? '';
  const signUp = () =>
    browser.call('POST', '/v1/client/sign_ups', { strategy: 'ticket', ticket, password: PASSWORD });
  const done = await signUp();
  expect(done.body).toMatchObject({
    response: { status: 'complete', email_address: emailAddress, unverified_fields: [] },
  });
  const user = provider.store.users.find(({ email }) => email === emailAddress);
  expect(user?.publicMetadata).toEqual({ plan: 'pro' });
  const accepted = await invitations.getInvitationList({ status: 'accepted' });
  expect(accepted.data.map(({ id }) => id)).toEqual([invitation.id]);
  await browser.call('DELETE', '/v1/client/sessions');
  expect((await signUp()).code).toBe('invitation_already_accepted');
});

test('A sign-up that changes the invited address needs an emailed code and does not accept the invitation', async () => {
  const { provider, browser } = await start();
  const { invitations } = clerkFor(provider);
  const { url = '' } = await invitations.createInvitation({ emailAddress: 'invited@example.com' });
  const ticket = new URL(url).searchParams.get('ticket') ?? '';
  const begun = await browser.call('POST', '/v1/client/sign_ups', { strategy: 'ticket', ticket });
  const path = `/v1/client/sign_ups/${begun.response?.id}`;
  const changed = await browser.call('PATCH', path, {
    email_address: 'other@example.com',
    password: PASSWORD,
  });
  expect(changed.body).toMatchObject({
    response: { status: 'missing_requirements', unverified_fields: ['email_address'] },
  });
  expect(provider.store.invitations.all().map(({ status }) => status)).toEqual(['pending']);
});

test('An invitation link responds with 400 unless it has a redirect URL to this machine. The link of a revoked invitation responds with an error', async () => {
  const { provider } = await start();
  const { invitations } = clerkFor(provider);
  const pages = ['https://evil.example/', 'http://localhost@evil.example/'];
  for (const target of [{}, ...pages.map((redirectUrl) => ({ redirectUrl }))]) {
    const emailAddress = 'invited@example.com';
    const { id, url = '' } = await invitations.createInvitation({ emailAddress, ...target });
    const followed = await fetch(url, { redirect: 'manual' });
    expect([followed.status, followed.headers.get('location')]).toEqual([400, null]);
    expect((await invitations.revokeInvitation(id)).status).toBe('revoked');
    expect(await (await fetch(url)).json()).toMatchObject({ errors: [{ code: 'revoked_invitation' }] });
  }
});

test('If the instance requires a protect check (a proof against bots), sign-ins and sign-ups continue only after the browser has sent the proof', async () => {
  const protectCheckUrl = 'https://protect.example/check.js';
  const { browser } = await start({ protectCheckUrl, verifyEmailAtSignUp: false });
  const check = { status: 'pending', sdk_url: protectCheckUrl };
  const pass = (path: string, proof = 'proof') =>
    browser.call('PATCH', `${path}/protect_check`, { proof_token: proof });

  const signUp = await browser.signUp('new@example.com', PASSWORD);
  expect(signUp.body).toMatchObject({
    response: {
      status: 'missing_requirements',
      missing_fields: ['protect_check'],
      protect_check: check,
    },
  });
  const completed = await pass(`/v1/client/sign_ups/${signUp.response?.id}`);
  expect(completed.body).toMatchObject({ response: { status: 'complete', protect_check: null } });
  await browser.call('DELETE', '/v1/client/sessions');

  const signIn = await browser.signIn(EMAIL, { password: PASSWORD });
  expect(signIn.body).toMatchObject({
    response: { status: 'needs_protect_check', protect_check: check },
    client: { sessions: [] },
  });
  const path = `/v1/client/sign_ins/${signIn.response?.id}`;
  const attempt = () =>
    browser.call('POST', `${path}/attempt_first_factor`, { strategy: 'password', password: PASSWORD });
  expect(await attempt()).toMatchObject({ status: 403, code: 'protect_check_required' });
  expect(await pass(path, '')).toMatchObject({ status: 422 });
  const passed = await pass(path);
  expect(passed.body).toMatchObject({ response: { status: 'needs_first_factor', protect_check: null } });
  expect(await pass(path)).toMatchObject({ status: 400, code: 'protect_check_already_resolved' });
  expect((await attempt()).response?.status).toBe('complete');
});
