import type { LookupFunction } from 'node:net';
import { verifyToken } from '@clerk/backend';
import * as mcp from '@modelcontextprotocol/client';
import { expect, test } from 'vitest';
import { downloadJson, isPublicAddress } from '../src/frontend-api/oauth-documents';
import { manualClock } from '../src/testing';
import { PASSWORD, signIn, startBrowser } from './helpers/browser';
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
/** Sends an authorization request. Returns where it leads, or `about:blank` if it leads nowhere. */
const authorize = async (fields: Readonly<Record<string, string>>) => {
  const query = new URLSearchParams({ client_id, state: 'a-state-', ...authorization, ...fields });
  return locationOf(await fetch(`${url}/oauth/authorize?${query}`, { redirect: 'manual' })).href;
};
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
const consent = async (fields = {}, origin = url, clientId = client_id) => {
  const form = { ...authorization, consented: 'true', ...fields };
  const response = await browser.send('POST', `/v1/me/oauth/consent/${encodeURIComponent(clientId)}`, form, {
    origin,
  });
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
  await signIn(page, email);
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
  const read = `fetch('${metadata.issuer}/.well-known/oauth-authorization-server', { headers: { 'mcp-protocol-version': '1' } })`;
  expect(await page.evaluate(`${read}.then((response) => response.json())`)).toEqual(metadata);
});

test('An invalid authorization request reaches the consent page in no case, and the client only with prompt=none', async () => {
  const { client_id: local } = await register('http://127.0.0.1/callback');
  for (const [fields, location] of [
    [{ code_challenge: '' }, /^https:\/\/client.example\/.*error=invalid_request&.*state=a-state-&iss=/],
    [{ code_challenge_method: 'plain' }, /error=invalid_request&/],
    [{ response_type: 'token' }, /error=unsupported_response_type&/],
    [{ scope: 'profile email' }, /error=invalid_scope&/],
    [{}, /error=interaction_required&/],
    [{ resource: 'javascript:alert(1)' }, /error=invalid_target&/],
    [{ client_id: 'unknown' }, /^about:blank$/],
    [{ redirect_uri: `${redirect_uri}/more` }, /^about:blank$/],
    [{ client_id: local, redirect_uri: 'http://127.0.0.1:80@evil.example/callback' }, /^about:blank$/],
    [{ client_id: local, redirect_uri: 'http://127.0.0.1:99999/callback' }, /^about:blank$/],
  ] as const)
    expect(await authorize({ prompt: 'none', ...fields })).toMatch(location);
  expect(await authorize({ scope: 'email' })).toBe('about:blank');
  // A native app chooses the port at run time.
  const redirect = { client_id: local, redirect_uri: 'http://127.0.0.1:6274/callback' };
  expect(await authorize(redirect)).toMatch(/\/oauth-consent\?/);
  // The request can be a form.
  const body = new URLSearchParams({ client_id, state: 'a-state-', ...authorization });
  expect((await fetch(`${url}/oauth/authorize`, { method: 'POST', body })).url).toContain('/oauth-consent?');
});

test('A token request that breaks an RFC gets the error code of the RFC', async () => {
  const request = { client_id, grant_type: 'authorization_code', code: 'x', redirect_uri, code_verifier };
  const post = async (body: string, type = 'application/x-www-form-urlencoded') => {
    const init = { method: 'POST', body, headers: { 'content-type': type } };
    const { error, error_description } = await (await fetch(`${url}/oauth/token`, init)).json();
    expect(error_description).toMatch(/^[\x20\x21\x23-\x5b\x5d-\x7e]+$/);
    return error;
  };
  for (const [fields, error] of [
    [{ grant_type: '' }, 'invalid_request'],
    [{ grant_type: 'password' }, 'unsupported_grant_type'],
    [{ code_verifier: 'too-short' }, 'invalid_request'],
    [{ client_id: 'un"known' }, 'invalid_client'],
    [{ resource: '', scope: '' }, 'invalid_grant'],
    [{}, 'invalid_grant'],
  ] as const)
    expect(await post(`${new URLSearchParams({ ...request, ...fields })}`)).toBe(error);
  expect(await post(`${new URLSearchParams(request)}&grant_type=refresh_token`)).toBe('invalid_request');
  expect(await post(JSON.stringify(request), 'application/json')).toBe('invalid_request');
  const { headers } = await fetch(`${url}/oauth/token_info`, { method: 'POST', body: new URLSearchParams() });
  expect(headers.get('www-authenticate')).toMatch(/^Basic realm="https:/);
});

test('A page of another origin cannot register a client, and a broken registration names its error', async () => {
  const document = JSON.stringify({ redirect_uris: [redirect_uri] });
  for (const [body, type] of [
    [document, 'text/plain;x=json'],
    [`redirect_uris=${redirect_uri}&redirect_uris=${redirect_uri}`, 'text/plain'],
    ['{', 'application/json'],
  ] as const) {
    const init = { method: 'POST', body, headers: { 'content-type': type } };
    const response = await fetch(`${url}/oauth/register`, init);
    expect(await response.json()).toMatchObject({ error: 'invalid_client_metadata' });
  }
});

test('A confidential client needs a state instead of PKCE, and can send its secret in the form', async () => {
  const { client_id, client_secret = '' } = await register();
  const request = { client_id, code_challenge: '', code_challenge_method: '' };
  expect(await consent({ ...request, state: 'short' }, url, client_id)).toBe('invalid_request');
  expect(await consent(request, url, client_id)).toBe('invalid_request');
  const code = await consent({ ...request, state: 'a-state-' }, url, client_id);
  const secret = { client_id, client_secret };
  expect(await exchange(code, { ...secret, code_verifier })).toMatchObject({ error: 'invalid_grant' });
  const { refresh_token: token = '' } = await exchange(code, { ...secret, code_verifier: '' });
  const send = (path: string) =>
    fetch(`${url}/oauth/${path}`, { method: 'POST', body: new URLSearchParams({ ...secret, token }) });
  expect(await (await send('token_info')).json()).toEqual({ active: true, client_id, sub, scope });
  expect((await send('token/revoke')).status).toBe(200);
  expect(await (await send('token_info')).json()).toEqual({ active: false });
});

test('A metadata document of the client takes the place of a registration, unless it is invalid or on a private address', async () => {
  let document: unknown;
  let type = 'application/json';
  const client = stopAfterAll(
    await startHttpServer(() => Response.json(document, { headers: { 'content-type': type } })),
  );
  const id = `${client.url}/client.json`;
  // The document cannot extend the scopes of the instance.
  const valid = {
    client_id: id,
    client_name: 'Agent',
    redirect_uris: [redirect_uri],
    scope: 'private_metadata',
  };
  const problem = async (content: unknown, client_id = id): Promise<string> => {
    document = content;
    const query = new URLSearchParams({ ...authorization, client_id });
    return (await (await fetch(`${url}/oauth/authorize?${query}`, { redirect: 'manual' })).json())
      .error_description;
  };
  expect(metadata).not.toHaveProperty('client_id_metadata_document_supported');
  expect(await problem(valid)).toContain('clientMetadataDocuments is off');
  emulator.configure({ clientMetadataDocuments: true });
  expect(await mcp.discoverAuthorizationServerMetadata(url)).toHaveProperty(
    'client_id_metadata_document_supported',
    true,
  );
  expect(await problem(valid)).toContain('address is not allowed');
  for (const host of ['localhost', '127.0.0.1', '[::1]'])
    expect(await problem(valid, `https://${host}:1/client.json`)).toContain('address is private');
  oauth.loopbackClients = true;
  expect(await problem({ ...valid, client_id: `${id}?` })).toContain('client_id');
  expect(await problem({ ...valid, client_name: undefined })).toContain('client_name');
  expect(await problem({ ...valid, client_secret: 'secret' })).toContain('client_secret');
  expect(await problem({ ...valid, redirect_uris: ['http://client.example/'] })).toContain('redirect_uris');
  expect(await problem({ ...valid, client_name: 'x'.repeat(6000) })).toContain('longer than 5 KB');
  for (const address of [client.url, `${client.url}/./client.json`, `${id}#x`])
    expect(await problem(valid, address)).toContain('address is not allowed');
  type = 'text/html';
  expect(await problem(valid)).toContain('content type');
  type = 'application/json; charset=utf-8';
  document = valid;
  expect(await authorize({ client_id: id })).toMatch(/\/oauth-consent\?/);
  document = null;
  expect(await authorize({ client_id: id })).toMatch(/\/oauth-consent\?/);
  const forbidden = { client_id: id, scope: 'private_metadata', prompt: 'none' };
  expect(await authorize(forbidden)).toContain('error=invalid_scope');
  const code = await consent({}, url, id);
  expect(await exchange(code, { client_id: id })).toHaveProperty('refresh_token');
});

test('The name of a metadata document is resolved once, to the address of the connection, and a slow lookup ends with the timeout', async () => {
  const server = stopAfterAll(await startHttpServer(({ headers }) => Response.json(headers.get('host'))));
  const { port } = new URL(server.url);
  const abort = new AbortController();
  const address = new URL(`http://client.example:${port}/client.json`);
  const resolved = ['127.0.0.1', '192.0.2.1'];
  const download = (isAllowed = () => true, lookup: LookupFunction = answer) =>
    downloadJson(address, { signal: abort.signal, isAllowed, lookup });
  const answer: LookupFunction = (_name, _options, callback) =>
    callback(null, [{ address: resolved.shift() ?? '', family: 4 }]);
  expect(await download()).toBe(address.host);
  expect(resolved).toEqual(['192.0.2.1']);
  await expect(download(() => false)).rejects.toThrow('address is private');
  await expect(download(undefined, () => abort.abort())).rejects.toThrow('aborted');
});

test('Every special-purpose address of the registries of IANA counts as private', () => {
  const special = `0.0.0.1 10.0.0.1 100.64.0.1 127.0.0.1 169.254.169.254 172.31.0.1 192.0.0.8 192.0.2.1 192.31.196.1
    192.52.193.1 192.88.99.1 192.168.0.1 192.175.48.1 198.19.0.1 198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1 255.255.255.255
    :: ::1 ::7f00:1 ::ffff:8.8.8.8 ::ffff:0:808:808 64:ff9b::7f00:1 64:ff9b:1::7f00:1 100::1 100:0:0:1::1 2001::1 2001:1::1
    2001:2::1 2001:3::1 2001:4:112::1 2001:10::1 2001:20::1 2001:30::1 2001:db8::1 2002:7f00:1::1 2620:4f:8000::1 3fff::1 4000::1
    5f00::1 fc00::1 fdff::1 fe80::1 fec0::1 ff02::1`;
  expect(special.split(/\s+/).filter(isPublicAddress)).toEqual([]);
  const open = ['8.8.8.8', '100.128.0.1', '172.32.0.1', '2001:4860:4860::8888', '2606:4700::1', '3ffe::1'];
  expect(open.filter(isPublicAddress)).toEqual(open);
});

test('A client that registers without scope may request the default scopes of the instance', async () => {
  const request = async (scope: string) => {
    const body = JSON.stringify({ redirect_uris: [redirect_uri], token_endpoint_auth_method: 'none' });
    const init = { method: 'POST', body, headers: { 'content-type': 'application/json' } };
    const { client_id } = await (await fetch(`${url}/oauth/register`, init)).json();
    return authorize({ client_id, scope });
  };
  expect(await request('profile email')).toMatch(/\/oauth-consent\?/);
  expect(await request(scope)).toBe('about:blank');
  emulator.configure({ oauthDefaultScopes: ['profile', 'offline_access'] });
  expect(await request(scope)).toMatch(/\/oauth-consent\?/);
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
  for (const fields of [
    { client_id },
    { redirect_uri: `${redirect_uri}/` },
    { code_verifier: `${code_verifier}0` },
  ])
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

test('Only a resource becomes the audience, and a token request cannot change it', async () => {
  expect(await claimsOf((await exchange(await consent())).access_token)).not.toHaveProperty('aud');
  const { access_token, refresh_token } = await exchange(await consent(), { resource });
  expect(await claimsOf(access_token)).toMatchObject({ aud: resource });
  expect((await refresh(refresh_token, { resource: 'https://other.example/' })).error).toBe('invalid_target');
  const changed = await exchange(await consent({ resource }), { resource: 'https://other.example/' });
  expect(changed.error).toBe('invalid_target');
});

test('A refresh token is valid once, and a second use after ten seconds ends the grant. Without offline_access, there is none', async () => {
  expect(await exchange(await consent({ scope: 'profile' }))).not.toHaveProperty('refresh_token');
  const first = await exchange(await consent());
  expect((await refresh(first.refresh_token, { scope: 'profile email' })).error).toBe('invalid_scope');
  const second = await refresh(first.refresh_token, { scope: 'profile' });
  expect(second.scope).toBe('profile');
  expect(await userInfo(second.refresh_token)).toBe(401);
  const { access_token, refresh_token } = await refresh(first.refresh_token, { scope: 'profile' });
  expect(await claimsOf(access_token)).toMatchObject({ scope: 'profile' });
  clock.after(10_000, () => {});
  clock.advance(10_000);
  expect((await refresh(first.refresh_token)).error).toBe('invalid_grant');
  for (const token of [second.refresh_token, refresh_token])
    expect((await refresh(token)).error).toBe('invalid_grant');
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
  const { access_token: online } = await exchange(await consent({ scope: 'profile' }));
  for (const { id } of store.sessions.all()) emulator.revokeSession(id);
  expect((await exchange(code)).error).toBe('invalid_grant');
  expect((await refresh(refresh_token)).error).toBe('invalid_grant');
  expect(await userInfo(online)).toBe(401);
  emulator.deleteUser(sub);
  expect(store.oauthGrants.size()).toBe(0);
});
