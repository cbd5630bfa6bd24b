import { verifyToken } from '@clerk/backend';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { developmentBrowser } from './helpers/development-browser';
import { clerkFor, startProvider } from './helpers/emulator';
import { errorOf } from './helpers/requests';
import { stopAfterAll } from './helpers/stop';

const provider = stopAfterAll(await startProvider());
const { organizations, users } = clerkFor(provider);
const newUser = (name: string) =>
  provider.createUser({ email: `${name}@org.example`, password: 'correct horse' });

/** Creates a user and signs the user in. `call` returns the `response` of a call to the Frontend API. */
async function signedIn(name: string) {
  const { id, email } = newUser(name);
  const browser = await developmentBrowser(provider);
  const { response } = await browser.signIn(email ?? '', { password: 'correct horse' });
  const session = `/v1/client/sessions/${response?.created_session_id}`;
  const Rows = z.array(z.looseObject({})).optional();
  const Row = z.looseObject({ id: z.string().optional(), data: Rows, organization_memberships: Rows });
  const call = async (method: string, path: string, fields: Record<string, string> = {}) => {
    const { status, body } = await browser.call(method, path, fields);
    return { status, ...z.object({ response: Row.optional() }).parse(body).response };
  };
  const claims = async (fields: Record<string, string> = {}) => {
    const { body } = await browser.call('POST', `${session}/tokens`, fields);
    const { jwt } = z.object({ jwt: z.string() }).parse(body);
    return verifyToken(jwt, { jwtKey: provider.publicKeyPem });
  };
  return { id, email: email ?? '', session, browser, call, claims };
}

/** Returns the types of the events that a function causes. */
async function eventsOf(cause: () => Promise<unknown>): Promise<string[]> {
  const before = provider.webhooks.list().length;
  await cause();
  return provider.webhooks
    .list()
    .slice(before)
    .map(({ type }) => type);
}

test('The Backend API creates, lists, changes and deletes organizations, with an event for each change', async () => {
  const { id: createdBy } = newUser('creator');
  let id = '';
  const created = await eventsOf(async () => {
    const organization = await organizations.createOrganization({ name: 'Ada & Co.', createdBy });
    id = organization.id;
    expect(organization).toMatchObject({ slug: 'ada-co', createdBy, name: 'Ada & Co.' });
  });
  expect(created).toEqual(['organization.created', 'organizationMembership.created']);
  expect((await organizations.getOrganization({ slug: 'ada-co' })).id).toBe(id);
  const found = await organizations.getOrganizationList({ query: 'ada', includeMembersCount: true });
  expect(found).toMatchObject({ totalCount: 1, data: [{ id, membersCount: 1 }] });
  const updated = await eventsOf(async () => {
    await organizations.updateOrganization(id, { name: 'Ada' });
    await organizations.updateOrganizationMetadata(id, { publicMetadata: { plan: 'pro' } });
  });
  expect(updated).toEqual(['organization.updated', 'organization.updated']);
  expect(await organizations.getOrganization({ organizationId: id })).toMatchObject({
    name: 'Ada',
    membersCount: undefined,
    publicMetadata: { plan: 'pro' },
  });
  const taken = await errorOf(organizations.createOrganization({ name: 'Other', createdBy, slug: 'ada-co' }));
  expect(taken).toMatchObject({ status: 422, parameter: 'slug' });
  expect(await eventsOf(() => organizations.deleteOrganization(id))).toEqual([
    'organizationMembership.deleted',
    'organization.deleted',
  ]);
  expect(await errorOf(organizations.getOrganization({ organizationId: id }))).toMatchObject({ status: 404 });
});

test('The Backend API adds, changes and removes members', async () => {
  const [owner, member] = [newUser('owner'), newUser('member')];
  const { id } = provider.createOrganization({ name: 'Members', createdBy: owner.id });
  const membership = { organizationId: id, userId: member.id };
  const events = await eventsOf(async () => {
    await organizations.createOrganizationMembership({ ...membership, role: 'org:member' });
    await organizations.updateOrganizationMembership({ ...membership, role: 'org:admin' });
  });
  expect(events).toEqual(['organizationMembership.created', 'organizationMembership.updated']);
  const members = await organizations.getOrganizationMembershipList({ organizationId: id });
  expect(members.data.map(({ role, publicUserData }) => [role, publicUserData?.userId])).toEqual([
    ['org:admin', owner.id],
    ['org:admin', member.id],
  ]);
  const own = await users.getOrganizationMembershipList({ userId: member.id });
  expect(own.data.map(({ organization }) => organization.id)).toEqual([id]);
  expect(await eventsOf(() => users.deleteUser(member.id))).toEqual([
    'organizationMembership.deleted',
    'user.deleted',
  ]);
});

test('The Backend API creates, lists, changes and deletes domains, which the members of the organization see', async () => {
  const admin = await signedIn('domains');
  const { id: organizationId } = provider.createOrganization({ name: 'Domains', createdBy: admin.id });
  const create = (name: string, verified?: boolean) =>
    organizations.createOrganizationDomain({
      organizationId,
      name,
      enrollmentMode: 'automatic_suggestion',
      ...(verified !== undefined && { verified }),
    });
  const listed = async (enrollmentMode?: 'manual_invitation') => {
    const all = { organizationId, ...(enrollmentMode && { enrollmentMode: [enrollmentMode] }) };
    return (await organizations.getOrganizationDomainList(all)).data.map(({ name }) => name);
  };
  const events = await eventsOf(async () => {
    await create('First.example');
    const { id: domainId, verification } = await create('second.example', false);
    expect(verification?.status).toBe('unverified');
    expect(await listed()).toEqual(['second.example', 'first.example']);
    const change = { organizationId, domainId, enrollmentMode: 'manual_invitation', verified: true } as const;
    expect((await organizations.updateOrganizationDomain(change)).verification?.status).toBe('verified');
    expect(await listed('manual_invitation')).toEqual(['second.example']);
    await organizations.deleteOrganizationDomain({ organizationId, domainId });
    expect((await errorOf(organizations.updateOrganizationDomain(change))).status).toBe(404);
  });
  expect(events).toEqual(
    ['created', 'created', 'updated', 'deleted'].map((change) => `organizationDomain.${change}`),
  );
  expect(await errorOf(create('first.example'))).toMatchObject({ status: 400, parameter: 'name' });
  expect(await errorOf(create('no domain'))).toMatchObject({ status: 422, parameter: 'name' });
  const { data } = await admin.call('GET', `/v1/organizations/${organizationId}/domains`);
  expect(data).toMatchObject([{ name: 'first.example', enrollment_mode: 'automatic_suggestion' }]);
  await organizations.deleteOrganization(organizationId);
  expect(provider.store.organizationDomains.size()).toBe(0);
});

test('An organization rejects unknown roles, and members and invitations that are doubled or above its limit', async () => {
  const [owner, member] = [newUser('rules'), newUser('rules-member')];
  const organization = await organizations.createOrganization({
    name: 'R',
    createdBy: owner.id,
    maxAllowedMemberships: 3,
  });
  const organizationId = organization.id;
  const add = (userId: string, role: string) =>
    organizations.createOrganizationMembership({ organizationId, userId, role });
  const invite = (emailAddress: string) =>
    organizations.createOrganizationInvitation({ organizationId, emailAddress, role: 'org:member' });
  const change = { organizationId, userId: owner.id, role: 'org:none' };
  expect(await errorOf(add(member.id, 'org:none'))).toMatchObject({ status: 404 });
  expect(await errorOf(organizations.updateOrganizationMembership(change))).toMatchObject({ status: 404 });
  await add(member.id, 'org:member');
  const emails = ['guest@rules.example', 'guest@rules.example'];
  const twice = emails.map((emailAddress) => ({ emailAddress, role: 'org:member' }));
  expect(await errorOf(organizations.createOrganizationInvitationBulk(organizationId, twice))).toMatchObject({
    code: 'duplicate_record',
  });
  await invite('guest@rules.example');
  expect(await errorOf(invite('guest@rules.example'))).toMatchObject({
    status: 400,
    code: 'duplicate_record',
  });
  expect(await errorOf(invite(member.email ?? ''))).toMatchObject({
    code: 'already_a_member_in_organization',
  });
  expect(await errorOf(invite('more@rules.example'))).toMatchObject({ status: 403 });
  await add(newUser('rules-other').id, 'org:member');
  expect(await errorOf(add(newUser('rules-more').id, 'org:member'))).toMatchObject({ status: 403 });
});

test('The metadata of an invitation is that of the membership, and its event names the user', async () => {
  const guest = await signedIn('accepts');
  const { id: organizationId } = provider.createOrganization({ name: 'M', createdBy: newUser('inviter').id });
  const metadata = { publicMetadata: { team: 'a' }, privateMetadata: { cost: 1 } };
  const bulk = [{ emailAddress: guest.email, role: 'org:member', expiresInDays: 2, ...metadata }];
  const [invited] = (await organizations.createOrganizationInvitationBulk(organizationId, bulk)).data;
  const ids = { organizationId, invitationId: invited?.id ?? '' };
  const { expiresAt, createdAt } = await organizations.getOrganizationInvitation(ids);
  expect(expiresAt - createdAt).toBe(2 * 24 * 60 * 60 * 1000);
  const own = await users.getOrganizationInvitationList({ userId: guest.id, status: 'pending' });
  expect(own.data).toMatchObject([{ id: invited?.id, publicOrganizationData: { id: organizationId } }]);
  await guest.call('POST', `/v1/me/organization_invitations/${invited?.id}/accept`);
  const memberships = await users.getOrganizationMembershipList({ userId: guest.id });
  expect(memberships.data).toMatchObject([metadata]);
  const event = provider.webhooks.list().find(({ type }) => type === 'organizationInvitation.accepted');
  expect(JSON.parse(event?.body ?? '')).toMatchObject({ data: { user_id: guest.id, status: 'accepted' } });
});

test('A session token contains the active organization, which the browser and a handshake change', async () => {
  const { id, session, browser, call, claims } = await signedIn('active');
  const first = provider.createOrganization({ name: 'First', createdBy: id });
  const second = provider.createOrganization({ name: 'Second', createdBy: id });
  const foreign = provider.createOrganization({ name: 'Foreign', createdBy: newUser('stranger').id });
  expect(await claims()).not.toHaveProperty('o');
  await call('POST', `${session}/touch`, { active_organization_id: first.id });
  expect(await claims()).toMatchObject({ o: { id: first.id, rol: 'admin', slg: 'first' } });
  expect(await claims({ organization_id: '' })).not.toHaveProperty('o');
  const sync = (organization_id: string) =>
    browser.send(
      'GET',
      `/v1/client/handshake?${new URLSearchParams({ organization_id, redirect_url: 'http://localhost:3000/' })}`,
    );
  await sync('second');
  expect(await claims()).toMatchObject({ o: { id: second.id } });
  await sync(foreign.id);
  expect(await claims()).toMatchObject({ o: { id: second.id } });
  const leave = () => call('DELETE', `/v1/me/organization_memberships/${second.id}`);
  expect((await leave()).status).toBe(400);
  const other = { userId: newUser('other-admin').id, role: 'org:admin' };
  await organizations.createOrganizationMembership({ organizationId: second.id, ...other });
  await leave();
  expect(await claims()).not.toHaveProperty('o');
});

test('A user creates an organization in the browser and invites a user, who accepts the invitation', async () => {
  const admin = await signedIn('admin');
  const guest = await signedIn('guest');
  const { id = '' } = await admin.call('POST', '/v1/organizations', { name: 'Browser' });
  const path = `/v1/organizations/${id}`;
  expect((await guest.call('GET', path)).status).toBe(403);
  const invitees = { email_address: guest.email, role: 'org:member' };
  expect((await admin.browser.send('POST', `${path}/invitations/bulk`, invitees)).status).toBe(200);
  const invitations = await guest.call('GET', '/v1/me/organization_invitations?paginated=true');
  const [invitation] = invitations.data ?? [];
  expect(invitation).toMatchObject({ public_organization_data: { id, name: 'Browser' } });
  await guest.call('POST', `/v1/me/organization_invitations/${invitation?.['id']}/accept`);
  for (const list of [`${path}/invitations`, '/v1/me/organization_invitations'])
    for (const [query, count] of [
      ['', 0],
      ['?status=accepted&status=revoked', 1],
    ] as const)
      expect((await guest.call('GET', list + query)).data).toHaveLength(count);
  expect((await guest.call('GET', '/v1/me')).organization_memberships).toMatchObject([
    { role: 'org:member', organization: { id, members_count: 2 } },
  ]);
  expect((await guest.call('PATCH', path, { name: 'Mine' })).status).toBe(403);
  expect((await guest.call('GET', `${path}/memberships?role=org:admin`)).data).toMatchObject([
    { public_user_data: { user_id: admin.id } },
  ]);
  expect((await admin.call('GET', `${path}/roles`)).data).toHaveLength(2);
  const demoted = await admin.call('PATCH', `${path}/memberships/${guest.id}`, { role: 'org:admin' });
  expect(demoted).toMatchObject({ status: 200, role: 'org:admin' });
  expect((await admin.call('DELETE', path)).status).toBe(200);
  expect(provider.store.memberships.find(({ organizationId }) => organizationId === id)).toBeUndefined();
});
