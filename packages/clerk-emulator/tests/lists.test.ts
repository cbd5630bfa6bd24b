import { expect, test } from 'vitest';
import { z } from 'zod';
import { clerkFor, SECRET_KEY, startProvider } from './helpers/emulator';
import { bearer } from './helpers/requests';
import { stopAfterAll } from './helpers/stop';

const provider = stopAfterAll(await startProvider());
const { invitations, organizations, users } = clerkFor(provider);

const Rows = z.array(z.looseObject({ id: z.string() }));
const Body = Rows.or(z.object({ data: Rows }).transform(({ data }) => data));
const get = (path: string) => fetch(`${provider.url}/v1/${path}`, { headers: bearer(SECRET_KEY) });
const list = async (path: string) =>
  Body.parse(await (await get(path)).json())
    .map(({ id }) => names.get(id))
    .join(' ');

const newUser = (name: string, more: Parameters<typeof users.createUser>[0]) =>
  users.createUser({
    firstName: name,
    emailAddress: [`${name}@list.example`],
    skipPasswordRequirement: true,
    ...more,
  });
const ada = await newUser('ada', { username: 'countess', externalId: 'crm-1', createdAt: new Date(1000) });
const bob = await newUser('bob', { createdAt: new Date(2000), banned: true });
const eve = await newUser('eve', { lastName: 'Moneypenny', createdAt: new Date(3000) });
provider.createSession(ada.id);
const google = { id: 'eac_1', provider: 'google', email: 'eve@gmail.com', firstName: null, lastName: null };
const stored = provider.store.users.get(eve.id);
if (stored) provider.store.users.put({ ...stored, externalAccounts: [google] });
const acme = await organizations.createOrganization({ name: 'Acme', createdBy: ada.id });
const beta = await organizations.createOrganization({ name: 'Beta', createdBy: bob.id });
const organizationId = acme.id;
const joined = await organizations.createOrganizationMembership({
  organizationId,
  userId: bob.id,
  role: 'org:member',
});
const invite = (emailAddress: string) =>
  organizations.createOrganizationInvitation({ organizationId, emailAddress, role: 'org:member' });
const [first, second] = [await invite('z@list.example'), await invite('y@list.example')];
await organizations.revokeOrganizationInvitation({ organizationId, invitationId: second.id });
const third = await invitations.createInvitation({ emailAddress: 'x@list.example', expiresInDays: 3 });
const fourth = await invitations.createInvitation({ emailAddress: 'w@list.example', expiresInDays: 2 });
const domain = (name: string, enrollmentMode: 'manual_invitation' | 'enterprise_sso', verified: boolean) =>
  organizations.createOrganizationDomain({ organizationId, name, enrollmentMode, verified });
const acmeIo = await domain('acme.io', 'manual_invitation', true);
const acmeDev = await domain('acme.dev', 'enterprise_sso', false);
const rows = { ada, bob, eve, acme, beta, joined, first, second, third, fourth, acmeIo, acmeDev };
const names = new Map(Object.entries(rows).map(([name, { id }]) => [id, name]));

test.each([
  ['email_address=ADA@list.example&email_address=eve@list.example', 'eve ada'],
  ['name_query=eve+money', 'eve'],
  ['query=moneyp', 'eve'],
  ['web3_wallet=0x1', ''],
  ['provider=oauth_google&provider_user_id=eve@gmail.com', 'eve'],
  ['external_id=-crm-1', 'eve bob'],
  [`organization_id=-${beta.id}`, 'eve ada'],
  ['banned=false', 'eve ada'],
  [`user_id=%2B${bob.id}&user_id=user_nobody`, 'bob'],
  ['created_at_after=1000', 'eve bob'],
  ['created_at_before=2000', 'ada'],
  ['last_sign_in_at_after=1', 'ada'],
])('The list and the count of users have the users that a parameter selects: %s', async (query, selected) => {
  expect(await list(`users?${query}`)).toBe(selected);
  const count = { object: 'total_count', total_count: selected.split(' ').filter(Boolean).length };
  expect(await (await get(`users/count?${query}`)).json()).toEqual(count);
});

test.each([
  ['users?order_by=-last_active_at', 'ada eve bob'],
  ['users?order_by=%2Bfirst_name&created_at_after=1000&offset=1&limit=1', 'eve'],
  [`users?starting_after=${eve.id}&limit=1`, 'bob'],
  ['organizations?order_by=-members_count', 'acme beta'],
  [`organizations?user_id=-${ada.id}`, 'beta'],
  [`organizations?organization_id=-${beta.id}`, 'acme'],
  [`organizations/${acme.id}/memberships?order_by=-email_address&limit=1`, 'joined'],
  [`organizations/${acme.id}/memberships?query=bob`, 'joined'],
  [`organizations/${acme.id}/memberships?email_address=nobody@list.example`, ''],
  [`organizations/${acme.id}/invitations?status=revoked`, 'second'],
  [`organizations/${acme.id}/invitations?order_by=email_address`, 'second first'],
  ['invitations?order_by=expires_at', 'fourth third'],
  ['organization_domains?order_by=name&query=acme', 'acmeDev acmeIo'],
  ['organization_domains?enrollment_mode=-enterprise_sso,-automatic_invitation', 'acmeIo'],
  ['organization_domains?domains=acme.io&domains=acme.dev&verified=false', 'acmeDev'],
])('A list has the rows that its parameters select, in their order: %s', async (path, selected) => {
  expect(await list(path)).toBe(selected);
});

test.each([
  ['users/count?limit=1', 'unknown', 'limit'],
  ['sessions?order_by=created_at', 'unknown', 'order_by'],
  ['users?created_after=1', 'unknown', 'created_after'],
  ['organizations?order_by=slug', 'format_invalid', 'order_by'],
  ['users?limit=ten', 'format_invalid', 'limit'],
  ['users?created_at_after=yesterday', 'format_invalid', 'created_at_after'],
  [`users?${'user_id=user_1&'.repeat(101)}`, 'format_invalid', 'user_id'],
])(
  'A list gets a 422 that names a parameter that is unknown or invalid: %s',
  async (path, error, param_name) => {
    const response = await get(path);
    expect(response.status).toBe(422);
    const errors = [{ code: `form_param_${error}`, meta: { param_name } }];
    expect(await response.json()).toMatchObject({ errors });
  },
);

test('A list of sessions, invitations or OAuth tokens is an array unless the query has `paginated=true`', async () => {
  for (const path of ['sessions', 'invitations', `users/${ada.id}/oauth_access_tokens/google`])
    for (const paginated of [true, false])
      expect(Array.isArray(await (await get(`${path}?paginated=${paginated}`)).json())).toBe(!paginated);
});
