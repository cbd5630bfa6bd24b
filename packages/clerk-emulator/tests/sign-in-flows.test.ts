import { expect, test } from 'vitest';
import { developmentBrowser, EMAIL, PASSWORD, startWithUser } from './helpers/development-browser';
import { errorOf } from './helpers/requests';

/** Starts an emulator with a user and a browser in which the user is not signed in. */
async function start(options?: Parameters<typeof startWithUser>[0]) {
  const { provider, user, clerk } = await startWithUser(options);
  return { provider, user, ...clerk, browser: await developmentBrowser(provider) };
}

test('A sign-in token is valid once, until it is revoked or expires', async () => {
  let time = Date.now();
  const clock = { now: () => time, after: () => () => undefined };
  const { provider, user, browser, signInTokens } = await start({ clock });
  const create = () => signInTokens.createSignInToken({ userId: user.id, expiresInSeconds: 60 });
  const enter = (ticket: string) =>
    browser.call('POST', '/v1/client/sign_ins', { strategy: 'ticket', ticket });
  const [used, open, late] = [await create(), await create(), await create()];
  const done = await enter(used.token);
  const verification = { object: 'verification_ticket', status: 'verified', strategy: 'ticket' };
  expect(done.body).toMatchObject({
    response: { status: 'complete', first_factor_verification: verification },
    client: { last_authentication_strategy: 'ticket' },
  });
  expect(provider.store.sessions.get(done.response?.created_session_id ?? '')?.userId).toBe(user.id);
  await browser.call('DELETE', '/v1/client/sessions');
  expect((await signInTokens.revokeSignInToken(open.id)).status).toBe('revoked');
  const again = await errorOf(signInTokens.revokeSignInToken(open.id));
  expect(again.code).toBe('sign_in_token_cannot_be_revoked_code');
  time += 60_000;
  for (const [ticket, code] of [
    [used.token, 'sign_in_token_already_used_code'],
    [open.token, 'sign_in_token_revoked_code'],
    [late.token, 'ticket_expired_code'],
    ['ticket_unknown', 'ticket_invalid_code'],
  ] as const)
    expect(await enter(ticket)).toMatchObject({ status: 400, code });
});

test('A ban revokes the sessions of a user and rejects sign-ins until it is lifted', async () => {
  const { provider, user, browser, users, signInTokens } = await start();
  const { token: ticket } = await signInTokens.createSignInToken({ userId: user.id, expiresInSeconds: 60 });
  const enter = () => browser.call('POST', '/v1/client/sign_ins', { strategy: 'ticket', ticket });
  provider.createSession(user.id);
  expect(await users.banUser(user.id)).toMatchObject({ banned: true, locked: false });
  const events = provider.webhooks.list().map(({ type }) => type);
  expect(events.slice(-2)).toEqual(['user.updated', 'session.revoked']);
  expect(await enter()).toMatchObject({ status: 403, code: 'user_banned' });
  expect((await users.unbanUser(user.id)).banned).toBe(false);
  expect((await enter()).response?.status).toBe('complete');
});

test('A lock rejects every step of a sign-in until it is removed, but ends no session', async () => {
  const { provider, user, browser, users } = await start();
  const { id } = provider.createSession(user.id);
  expect(await users.lockUser(user.id)).toMatchObject({ locked: true, banned: false });
  for (const secret of [{ password: 'wrong' }, { password: PASSWORD }, { strategy: 'email_code' }])
    expect(await browser.signIn(EMAIL, secret)).toMatchObject({ status: 403, code: 'user_locked' });
  expect(provider.store.sessions.get(id)?.status).toBe('active');
  expect((await users.unlockUser(user.id)).locked).toBe(false);
  expect((await browser.signIn(EMAIL, { password: PASSWORD })).response?.status).toBe('complete');
});

test('An invitation completes one sign-up without a mailed code, with its public metadata', async () => {
  const { provider, browser, invitations } = await start();
  const emailAddress = 'invited@example.com';
  const invitation = await invitations.createInvitation({
    emailAddress,
    publicMetadata: { plan: 'pro' },
    redirectUrl: 'http://localhost:3000/sign-up',
  });
  expect((await invitations.getInvitationList()).data.map(({ id }) => id)).toEqual([invitation.id]);
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

test('With a waitlist, only an address that was invited from it signs up', async () => {
  const { provider, browser, waitlistEntries } = await start({ waitlist: true });
  const join = (email_address: string) => browser.call('POST', '/v1/waitlist', { email_address });
  await join('new@example.com');
  const id = provider.store.waitlistEntries.all()[0]?.id ?? '';
  expect((await join('New@example.com')).body).toEqual({ object: 'waitlist_entry', id });
  expect((await join('new@')).status).toBe(422);
  expect(await browser.signUp('new@example.com', PASSWORD)).toMatchObject({
    status: 403,
    code: 'sign_up_restricted_waitlist',
  });
  const bulk = ['new@example.com', 'other@example.com'].map((emailAddress) => ({ emailAddress }));
  const [, other] = await waitlistEntries.createBulk(bulk);
  const otherId = other?.id ?? '';
  expect((await waitlistEntries.list({ orderBy: '+email_address' })).data).toMatchObject([
    { id },
    { id: otherId },
  ]);
  const { invitation } = await waitlistEntries.invite(id);
  const ticket = new URL(invitation?.url ?? '').searchParams.get('ticket') ?? '';
  expect(
    (await browser.call('POST', '/v1/client/sign_ups', { ticket, password: PASSWORD })).response?.status,
  ).toBe('complete');
  expect((await waitlistEntries.list({ status: 'completed' })).data).toMatchObject([{ id }]);
  expect((await errorOf(waitlistEntries.delete(id))).status).toBe(409);
  expect((await waitlistEntries.reject(otherId)).status).toBe('rejected');
  expect((await errorOf(waitlistEntries.invite(otherId))).status).toBe(409);
  const last = await waitlistEntries.create({ emailAddress: 'last@example.com' });
  await waitlistEntries.delete(last.id);
  expect((await waitlistEntries.list({ query: 'last' })).totalCount).toBe(0);
});

test('An address with a pending invitation is not invited again', async () => {
  const { invitations } = await start();
  const invite = () => invitations.createInvitation({ emailAddress: 'invited@example.com' });
  const { id } = await invite();
  expect(await errorOf(invite())).toMatchObject({ status: 400, code: 'duplicate_record' });
  await invitations.revokeInvitation(id);
  expect((await invite()).status).toBe('pending');
  expect((await errorOf(invitations.revokeInvitation(id))).code).toBe('invitation_already_revoked');
});

test('A sign-up that changes the invited address needs a mailed code and does not accept the invitation', async () => {
  const { provider, browser, invitations } = await start();
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
  expect(provider.store.tickets.all().map(({ status }) => status)).toEqual(['pending']);
});

test('The link of an invitation leads only to this machine, and after a revocation to an error', async () => {
  const { provider, invitations } = await start();
  for (const [redirectUrl, status, origin] of [
    [undefined, 303, provider.url],
    ['https://evil.example/', 400, undefined],
    ['http://localhost@evil.example/', 400, undefined],
  ] as const) {
    const emailAddress = 'invited@example.com';
    const { id, url = '' } = await invitations.createInvitation({
      emailAddress,
      ...(redirectUrl && { redirectUrl }),
    });
    const followed = await fetch(url, { redirect: 'manual' });
    const location = followed.headers.get('location');
    expect([followed.status, location === null ? undefined : new URL(location).origin]).toEqual([
      status,
      origin,
    ]);
    expect((await invitations.revokeInvitation(id)).status).toBe('revoked');
    expect(await (await fetch(url)).json()).toMatchObject({ errors: [{ code: 'revoked_invitation' }] });
  }
});
