import { verifyToken } from '@clerk/backend';
import * as mcp from '@modelcontextprotocol/client';
import { expect, test } from 'vitest';
import { manualClock } from '../src/testing/manual-clock';
import { PASSWORD, startBrowser, submit } from './helpers/browser';
import { developmentBrowser } from './helpers/development-browser';
import { startProvider } from './helpers/emulator';
import { startHttpServer } from './helpers/http-server';
import { bearer } from './helpers/requests';
import { stopAfterAll } from './helpers/stop';

const resource = 'https://api.example/mcp';
const redirect_uri = 'https://client.example/callback';
const scope = 'profile offline_access';
const code_verifier = 'a-code-verifier-of-at-least-43-characters-00';
const pkce = { code_challenge: 'lhO2XUD7VHrFXE2VPv4-9rI4fRJDPa49utLzXQyvPdE', code_challenge_method: 'S256' };
const authorization = { response_type: 'code', redirect_uri, scope, ...pkce };

const clock = manualClock();
const emulator = stopAfterAll(await startProvider({ clock, console: { preferredPort: 0 } }));
const { url, oauth, store } = emulator;
const { id: sub, email } = emulator.createUser({ email: 'ada@example.com', password: PASSWORD });
const application = stopAfterAll(await startHttpServer(() => new Response('The client')));
const newPage = await startBrowser();

const metadata = (await mcp.discoverAuthorizationServerMetadata(url)) ?? expect.fail('There is no metadata.');
const register = (uri = redirect_uri, fields = {}) =>
  mcp.registerClient(url, { metadata, clientMetadata: { redirect_uris: [uri], ...fields }, scope });
const registerPublic = () => register(redirect_uri, { token_endpoint_auth_method: 'none' });
const { client_id } = await registerPublic();
const token = async (fields: object): Promise<Partial<mcp.OAuthTokens & mcp.OAuthErrorResponse>> => {
  const body = new URLSearchParams({ client_id, ...fields });
  return (await fetch(`${url}/oauth/token`, { method: 'POST', body })).json();
};
const exchange = (code: string, fields = {}) =>
  token({ grant_type: 'authorization_code', code, redirect_uri, code_verifier, ...fields });
const refresh = (refresh_token = '', fields = {}) =>
  token({ grant_type: 'refresh_token', refresh_token, ...fields });
const userInfo = async (accessToken = '') =>
  (await fetch(`${url}/oauth/userinfo`, { headers: bearer(accessToken) })).status;
const claimsOf = (accessToken = '') =>
  verifyToken(accessToken, { jwtKey: emulator.publicKeyPem, headerType: ['at+jwt'] });

const browser = await developmentBrowser(emulator);
await browser.signIn(email, { password: PASSWORD });
const locationOf = ({ headers }: Response) => new URL(headers.get('location') ?? 'about:blank', url);
/** Sends the form of the consent page. Returns the code or the error that the client gets. */
const consent = async (fields = {}, origin = url) => {
  const form = { ...authorization, consented: 'true', ...fields };
  const response = await browser.send('POST', `/v1/me/oauth/consent/${client_id}`, form, { origin });
  const { searchParams } = locationOf(response);
  return searchParams.get('code') ?? searchParams.get('error') ?? '';
};

test('The official MCP client registers itself, and gets and refreshes tokens after a consent in a browser', async () => {
  const redirectUrl = `${application.url}/callback`;
  const client_name = '<img src=x> & sons';
  const clientInformation = await register(redirectUrl, { client_name });
  const options = { metadata, clientInformation, redirectUrl, redirectUri: redirectUrl, scope, resource };
  const { authorizationUrl, codeVerifier } = await mcp.startAuthorization(url, options);
  const page = await newPage(url);
  await page.goto(authorizationUrl.href);
  await page.fill('input[name=identifier]', email);
  await submit(page);
  await page.fill('input[name=password]', PASSWORD);
  await submit(page);
  await page.getByRole('heading', { name: client_name }).waitFor();
  await page.getByRole('button', { name: 'Allow' }).click();
  await page.waitForURL(`${redirectUrl}?**`);
  const { code: authorizationCode = '', iss = '' } = Object.fromEntries(new URL(page.url()).searchParams);
  const grant = { ...options, authorizationCode, iss, codeVerifier };
  const { refresh_token: refreshToken = '' } = await mcp.exchangeAuthorization(url, grant);
  const { access_token } = await mcp.refreshAuthorization(url, { ...options, refreshToken });
  const { client_id } = clientInformation;
  expect(await claimsOf(access_token)).toMatchObject({ aud: resource, client_id, iss: url, scope, sub });
});

test('The console shows a client and a consent without the secrets', async () => {
  const secrets = [(await exchange(await consent())).refresh_token, (await register()).client_secret];
  const { body } = await fetch(`${emulator.consoleUrl}/api/state`);
  const state = Buffer.from((await body?.getReader().read())?.value ?? '').toString();
  for (const secret of secrets) expect(state).not.toContain(secret);
  const page = await newPage(emulator.consoleUrl ?? '');
  await page.goto('/');
  await page.locator('.user', { hasText: client_id }).getByText(`${sub}: profile, offline_access`).waitFor();
});

test('A page of another origin on this machine reads the metadata with the header of an MCP client', async () => {
  const page = await newPage(application.url);
  await page.goto('/');
  const read = `fetch('${metadata.issuer}/.well-known/openid-configuration', { headers: { 'mcp-protocol-version': '1' } })`;
  expect(await page.evaluate(`${read}.then((response) => response.json())`)).toEqual(metadata);
});

test('An invalid authorization request does not reach the consent page. It returns to the client if the redirect is registered', async () => {
  const { client_id: local } = await register('http://127.0.0.1/callback');
  for (const [fields, location] of [
    [{ code_challenge: '' }, /^https:\/\/client.example\/.*error=invalid_request&.*state=s&iss=/],
    [{ code_challenge_method: 'plain' }, /error=invalid_request&/],
    [{ response_type: 'token' }, /error=unsupported_response_type&/],
    [{ scope: 'profile email' }, /error=invalid_scope&/],
    [{ resource: 'javascript:alert(1)' }, /error=invalid_target&/],
    [{ client_id: 'unknown' }, /^about:blank$/],
    [{ redirect_uri: `${redirect_uri}/more` }, /^about:blank$/],
    [{ client_id: local, redirect_uri: 'http://127.0.0.1:80@evil.example/callback' }, /^about:blank$/],
    [{ client_id: local, redirect_uri: 'http://127.0.0.1:99999/callback' }, /^about:blank$/],
    // A native app chooses the port at run time.
    [{ client_id: local, redirect_uri: 'http://127.0.0.1:6274/callback' }, /\/oauth-consent\?/],
  ] as const) {
    const query = new URLSearchParams({ client_id, state: 's', ...authorization, ...fields });
    const response = await fetch(`${url}/oauth/authorize?${query}`, { redirect: 'manual' });
    expect(locationOf(response).href).toMatch(location);
  }
});

test('A client can register only redirects with TLS, to this machine or to a native app', async () => {
  const hidden = ['\x01javascript:alert(1)', '\x01http://client.example/'];
  for (const uri of ['http://client.example/', 'javascript:alert(1)', 'https://client.example/#', ...hidden])
    await expect(register(uri)).rejects.toMatchObject({
      body: expect.stringContaining('invalid_redirect_uri'),
    });
  for (const uri of ['http://localhost:1/', 'cursor://mcp/callback'])
    expect(await register(uri)).toHaveProperty('client_secret');
});

test('Only the consent page can consent, and a denial returns to the client', async () => {
  expect(await consent({}, 'http://localhost:3000')).toBe('');
  expect(await consent({ consented: 'false' })).toBe('access_denied');
});

test('A code is valid once, and only for its client, redirect URI and verifier. A second use ends the grant', async () => {
  const code = await consent();
  const { client_id } = await registerPublic();
  for (const fields of [{ client_id }, { redirect_uri: `${redirect_uri}/` }, { code_verifier: 'another' }])
    expect((await exchange(code, fields)).error).toBe('invalid_grant');
  const confidential = await register();
  for (const id of [confidential.client_id, `${confidential.client_id}:${confidential.client_secret}`])
    expect((await exchange(code, { client_id: id })).error).toBe('invalid_client');
  const { access_token, refresh_token } = await exchange(code);
  expect(await userInfo(access_token)).toBe(200);
  expect((await exchange(code)).error).toBe('invalid_grant');
  expect((await refresh(refresh_token)).error).toBe('invalid_grant');
  expect(await userInfo(access_token)).toBe(401);
});

test('A refresh token is valid once, and a second use ends the grant. Without offline_access, there is none', async () => {
  expect(await exchange(await consent({ scope: 'profile' }))).not.toHaveProperty('refresh_token');
  const first = await exchange(await consent());
  expect((await refresh(first.refresh_token, { scope: 'profile email' })).error).toBe('invalid_scope');
  const second = await refresh(first.refresh_token, { scope: 'profile' });
  expect(second.scope).toBe('profile');
  expect(await userInfo(second.refresh_token)).toBe(401);
  expect((await refresh(first.refresh_token)).error).toBe('invalid_grant');
  expect((await refresh(second.refresh_token)).error).toBe('invalid_grant');
});

test('Only a resource becomes the audience, and a token request cannot change it', async () => {
  expect(await claimsOf((await exchange(await consent())).access_token)).not.toHaveProperty('aud');
  const { access_token, refresh_token } = await exchange(await consent(), { resource });
  expect(await claimsOf(access_token)).toMatchObject({ aud: resource });
  expect((await refresh(refresh_token, { resource: 'https://other.example/' })).error).toBe('invalid_target');
  const changed = await exchange(await consent({ resource }), { resource: 'https://other.example/' });
  expect(changed.error).toBe('invalid_target');
});

test('An opaque access token expires after the lifetime in the settings', async () => {
  Object.assign(oauth, { accessTokenFormat: 'opaque', accessTokenSeconds: 60 });
  const { access_token } = await exchange(await consent());
  expect([access_token?.slice(0, 4), await userInfo(access_token)]).toEqual(['oat_', 200]);
  clock.after(60_000, () => {});
  clock.advance();
  expect(await userInfo(access_token)).toBe(401);
});

test('After the end of the session, a client gets no tokens. The deletion of the user ends the consents', async () => {
  const code = await consent();
  const { refresh_token } = await exchange(await consent());
  for (const { id } of store.sessions.all()) emulator.revokeSession(id);
  expect((await exchange(code)).error).toBe('invalid_grant');
  expect((await refresh(refresh_token)).error).toBe('invalid_grant');
  emulator.deleteUser(sub);
  expect(store.oauthGrants.size()).toBe(0);
});
