import { expect, test } from 'vitest';
import { developmentBrowser } from './helpers/development-browser';
import { clerkFor, startForTest } from './helpers/emulator';
import { bearer } from './helpers/requests';

const PASSWORD = 'correct horse battery';
const PNG = Buffer.from('iVBORw0KGgo=', 'base64');

async function start(options = {}) {
  const emulator = await startForTest(options);
  const user = emulator.createUser({ email: 'ada@example.com', password: PASSWORD });
  const browser = await developmentBrowser(emulator);
  const signedIn = await browser.signIn(user.email, { password: PASSWORD });
  return {
    emulator,
    user,
    browser,
    clerk: clerkFor(emulator),
    session: signedIn.response?.created_session_id,
  };
}

test('A picture is stored and served, and a file that is not a picture is rejected', async () => {
  const { emulator, user, browser, clerk } = await start();
  const { id: organizationId } = emulator.createOrganization({ name: 'Acme', createdBy: user.id });
  const upload = (path: string, method: string, type: string) => {
    const body = new FormData();
    body.append('file', new Blob([PNG], { type }), 'picture');
    const query = new URLSearchParams({ __clerk_db_jwt: browser.token, _method: method });
    return fetch(`${emulator.url}${path}?${query}`, { method: 'POST', body });
  };
  const stored = async (response: Response) => {
    expect(response.status).toBe(200);
    const { imageUrl } = emulator.store.users.get(user.id) ?? {};
    return imageUrl ?? '';
  };
  const picture = await fetch(await stored(await upload('/v1/me/profile_image', 'POST', 'image/png')));
  expect([picture.headers.get('content-type'), Buffer.from(await picture.arrayBuffer())]).toEqual([
    'image/png',
    PNG,
  ]);
  expect((await clerk.users.getUser(user.id)).hasImage).toBe(true);
  expect((await upload('/v1/me/profile_image', 'POST', 'text/html')).status).toBe(422);
  expect((await upload(`/v1/organizations/${organizationId}/logo`, 'PUT', 'image/webp')).status).toBe(200);
  const { hasImage } = await clerk.organizations.getOrganization({ organizationId });
  expect(hasImage).toBe(true);
  await browser.call('DELETE', '/v1/me/profile_image');
  expect((await clerk.users.getUser(user.id)).imageUrl).toMatch(/^data:image\/svg\+xml,/);
});

test('A member of an organization gets an empty list of its domains', async () => {
  const { emulator, user, browser } = await start();
  const { id } = emulator.createOrganization({ name: 'Acme', createdBy: user.id });
  const { body } = await browser.call('GET', `/v1/organizations/${id}/domains`);
  expect(body).toMatchObject({ response: { data: [], total_count: 0 } });
});

test('A path of Clerk that is not emulated gets a 501 in both APIs, and any other path a 404', async () => {
  const { emulator } = await start();
  const status = async (path: string, headers = {}) => (await fetch(emulator.url + path, { headers })).status;
  const secret = bearer(emulator.variables['CLERK_SECRET_KEY'] ?? '');
  for (const path of ['/v1/billing/plans', '/api_keys', '/v1/waitlist']) expect(await status(path)).toBe(501);
  for (const path of ['/v1/billing/plans', '/v1/saml_connections'])
    expect(await status(path, secret)).toBe(501);
  expect([await status('/v1/nothing', secret), await status('/v1/saml_connections')]).toEqual([404, 401]);
});

test("Clerk's errors for a left organization, a second invitation, a short user name and a setting that is off", async () => {
  const { emulator, user, browser, session } = await start({ usernames: true });
  const { id } = emulator.createOrganization({ name: 'Acme', createdBy: user.id });
  const left = await browser.call('POST', `/v1/client/sessions/${session}/touch`, {
    active_organization_id: 'org_left',
  });
  expect(left).toMatchObject({ status: 403, code: 'organization_not_found_or_unauthorized' });
  const fields = { email_address: 'guest@example.com', role: 'org:member' };
  const invite = () => browser.call('POST', `/v1/organizations/${id}/invitations`, fields);
  await invite();
  expect((await invite()).body).toMatchObject({
    errors: [{ code: 'duplicate_record', meta: { email_addresses: ['guest@example.com'] } }],
  });
  const rename = async (username: string) => (await browser.call('PATCH', '/v1/me', { username })).code;
  expect(await rename('ab')).toBe('form_username_invalid_length');
  expect(await rename('a b c d')).toBe('form_username_invalid_character');
  expect(await rename('ada-l')).toBeUndefined();
  const other = await developmentBrowser(emulator);
  const byGoogle = { strategy: 'oauth_google', redirect_url: 'http://localhost:3000/' };
  for (const kind of ['ins', 'ups'])
    expect((await other.call('POST', `/v1/client/sign_${kind}`, byGoogle)).code).toBe(
      'form_param_value_invalid',
    );
  const withPhone = await other.call('POST', '/v1/client/sign_ups', { phone_number: '+15555550100' });
  expect(withPhone).toMatchObject({ status: 422, code: 'form_param_unknown' });
});

test('The devices of a user have the name and the version of their browsers', async () => {
  const { emulator, user } = await start();
  const agents = {
    'Chrome 140.0.0.0':
      'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
    'Microsoft Edge 140.0.0.0':
      'Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0',
    'Safari 18.5':
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1',
  };
  for (const agent of Object.values(agents)) {
    const opened = await fetch(`${emulator.url}/v1/dev_browser`, {
      method: 'POST',
      headers: { 'user-agent': agent },
    });
    const { id } = await opened.json();
    const browser = await developmentBrowser(emulator, id);
    await browser.signIn(user.email, { password: PASSWORD });
    const response = await browser.send('GET', '/v1/me/sessions/active');
    const { latest_activity: last } = (await response.json()).at(-1);
    expect(`${last.browser_name} ${last.browser_version}`).toBe(
      Object.keys(agents)[Object.values(agents).indexOf(agent)],
    );
  }
});

test('The Frontend API rejects a request with an Origin and an Authorization header', async () => {
  const { browser } = await start();
  const headers = { origin: 'http://localhost:3000', authorization: 'token' };
  const both = await browser.call('GET', '/v1/client', {}, headers);
  expect(both).toMatchObject({ status: 400, code: 'origin_authorization_headers_conflict' });
});
