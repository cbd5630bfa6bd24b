import { expect, test } from 'vitest';
import { developmentBrowser, EMAIL, PASSWORD, startWithUser } from './helpers/development-browser';
import { bearer } from './helpers/requests';

const PNG = Buffer.from('iVBORw0KGgo=', 'base64');

test('A picture is stored and served, and a file that is not a picture is rejected', async () => {
  const { provider, user, enter, clerk } = await startWithUser();
  const browser = await enter();
  const { id: organizationId } = provider.createOrganization({ name: 'Acme', createdBy: user.id });
  const upload = (path: string, method: string, type: string) => {
    const body = new FormData();
    body.append('file', new Blob([PNG], { type }), 'picture');
    const query = new URLSearchParams({ __clerk_db_jwt: browser.token, _method: method });
    return fetch(`${provider.url}${path}?${query}`, { method: 'POST', body });
  };
  const stored = async (response: Response) => {
    expect(response.status).toBe(200);
    const { imageUrl } = provider.store.users.get(user.id) ?? {};
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
  const file = new Blob([PNG], { type: 'image/png' });
  expect((await clerk.users.updateUserProfileImage(user.id, { file })).hasImage).toBe(true);
  expect((await clerk.users.deleteUserProfileImage(user.id)).hasImage).toBe(false);
});

test('A path of Clerk that is not emulated gets a 501 that names it, and any other path a 401 or 404', async () => {
  const { provider } = await startWithUser();
  const secret = bearer(provider.variables['CLERK_SECRET_KEY'] ?? '');
  for (const [path, status, headers] of [
    ['/v1/billing/plans', 501],
    ['/api_keys', 501],
    ['/v1/me/passkeys', 501],
    ['/v1/billing/plans', 501, secret],
    ['/v1/saml_connections', 501, secret],
    ['/api_keys', 501, secret],
    ['/v1/nothing', 404, secret],
    ['/v1/saml_connections', 401],
  ] as const) {
    const response = await fetch(provider.url + path, headers ? { headers } : {});
    expect([path, response.status]).toEqual([path, status]);
    if (status === 501) expect(await response.text()).toMatch(new RegExp(`GET ${path}.*README`));
  }
});

test("Clerk's errors for a left organization, a second invitation, a short user name and a setting that is off", async () => {
  const { provider, user, enter } = await startWithUser({ usernames: true });
  const browser = await enter();
  const { id } = provider.createOrganization({ name: 'Acme', createdBy: user.id });
  const left = await browser.call('POST', `/v1/client/sessions/${browser.sessionId}/touch`, {
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
  const other = await developmentBrowser(provider);
  const byGoogle = { strategy: 'oauth_google', redirect_url: 'http://localhost:3000/' };
  for (const kind of ['ins', 'ups'])
    expect((await other.call('POST', `/v1/client/sign_${kind}`, byGoogle)).code).toBe(
      'form_param_value_invalid',
    );
  const withPhone = await other.call('POST', '/v1/client/sign_ups', { phone_number: '+15555550100' });
  expect(withPhone).toMatchObject({ status: 422, code: 'form_param_unknown' });
});

test.each([
  ['Chrome 140.0.0.0', 'Chrome/140.0.0.0 Safari/537.36'],
  ['Microsoft Edge 140.0.0.0', 'Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0'],
  ['Safari 18.5', 'Version/18.5 Mobile/15E148 Safari/604.1'],
])('A device of a user has the name and the version of its browser: %s', async (name, agent) => {
  const { provider } = await startWithUser();
  const headers = { 'user-agent': `Mozilla/5.0 (X11) AppleWebKit/537.36 (KHTML, like Gecko) ${agent}` };
  const opened = await fetch(`${provider.url}/v1/dev_browser`, { method: 'POST', headers });
  const browser = await developmentBrowser(provider, (await opened.json()).id);
  await browser.signIn(EMAIL, { password: PASSWORD });
  const devices = await (await browser.send('GET', '/v1/me/sessions/active')).json();
  const { browser_name, browser_version } = devices.at(-1).latest_activity;
  expect(`${browser_name} ${browser_version}`).toBe(name);
});
