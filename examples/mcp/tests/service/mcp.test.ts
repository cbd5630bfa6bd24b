import {
  Client,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client';
import { build } from 'esbuild';
import { chromium } from 'playwright';
import { afterAll, expect, test } from 'vitest';
import { freePort } from '../../dev/system/listen';
import { chromiumOptions } from '../harness/browser/chromium';
import { runCommand } from '../harness/commands';
import { startFetchServer } from '../harness/dependencies/stub-server';
import { exchange, requestHead } from '../harness/raw-http';
import { bearer } from '../harness/requests';
import { startDependencies, startServiceProcess } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const port = await freePort();
const origin = `http://localhost:${port}`;
const resource = `${origin}/mcp/v1`;
const dependencies = await startDependencies();
stopAfterAll(dependencies);
const { idp, database } = dependencies;
const environment = { ...dependencies.environment, PUBLIC_ORIGIN: origin };
stopAfterAll(await startServiceProcess(environment, port));

const password = 'correct horse battery';
const { id: userId, email } = idp.createUser({ email: 'agent@example.com', password });
const internalId = async () => (await database.idsOf(userId))[0];

const browser = await chromium.launch(await chromiumOptions());
afterAll(() => browser.close());

/** The bundle of the official client, and a page of another origin that loads it. */
const entry = `export { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';`;
const { outputFiles } = await build({
  stdin: { contents: entry, resolveDir: process.cwd() },
  bundle: true,
  format: 'iife',
  globalName: 'mcp',
  platform: 'browser',
  write: false,
});
const html = (body: string) => new Response(body, { headers: { 'content-type': 'text/html' } });
const application = stopAfterAll(
  await startFetchServer(({ url }) =>
    url.endsWith('/client.js')
      ? new Response(outputFiles[0]?.text)
      : html('<!doctype html><title>Application</title><script src="/client.js"></script>'),
  ),
);
const redirectUrl = `${application.url}/callback`;

/** Storage of a client, which knows only the URL of the MCP server. */
const stored: {
  client?: StoredOAuthClientInformation;
  tokens?: StoredOAuthTokens;
  verifier?: string;
  discovery?: OAuthDiscoveryState;
  url?: URL;
} = {};
const authProvider: OAuthClientProvider = {
  redirectUrl,
  clientMetadata: {
    client_name: 'Agent',
    redirect_uris: [redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_method: 'none',
  },
  clientInformation: () => stored.client,
  saveClientInformation: (client) => void Object.assign(stored, { client }),
  tokens: () => stored.tokens,
  saveTokens: (tokens) => void Object.assign(stored, { tokens }),
  redirectToAuthorization: (url) => void Object.assign(stored, { url }),
  saveCodeVerifier: (verifier) => void Object.assign(stored, { verifier }),
  codeVerifier: () => stored.verifier ?? '',
  saveDiscoveryState: (discovery) => void Object.assign(stored, { discovery }),
  discoveryState: () => stored.discovery,
};
const transport = () => new StreamableHTTPClientTransport(new URL(resource), { authProvider });

/** Connects and calls the tool. Returns the text of its result. */
async function whoami(connection: StreamableHTTPClientTransport): Promise<unknown> {
  const client = new Client({ name: 'test', version: '1.0.0' });
  await client.connect(connection);
  const { content } = await client.callTool({ name: 'whoami' });
  await client.close();
  return Object(content)[0].text;
}

/** Opens the address of the authorization server, signs in, and allows the client. Returns what the client gets. */
async function consent(url: URL | undefined): Promise<URLSearchParams> {
  const page = await browser.newPage();
  await page.goto(url?.href ?? '');
  for (const [name, value] of [
    ['identifier', email],
    ['password', password],
  ] as const) {
    await page.fill(`input[name=${name}]`, value);
    await page.locator('.cl-formButtonPrimary').press('Enter');
  }
  await page.getByRole('button', { name: 'Allow' }).click();
  await page.waitForURL(`${redirectUrl}?**`);
  const { searchParams } = new URL(page.url());
  await page.close();
  return searchParams;
}

test('A client that knows one URL registers itself, gets the consent of the user, and calls a tool with the internal id', async () => {
  const first = transport();
  await expect(whoami(first)).rejects.toThrow(UnauthorizedError);
  await first.finishAuth(await consent(stored.url));
  const id = await whoami(transport());
  expect(id).toBe(await internalId());
  expect(stored.tokens?.scope).toBe('profile offline_access');
});

test('A request with the host name of an attacker, as after DNS rebinding, gets a 403', async () => {
  const token = idp.oauthToken(userId, { audience: resource, scopes: ['profile'] });
  for (const [host, status] of [
    [`evil.example:${port}`, 403],
    [`localhost:${port}`, 405],
  ] as const) {
    const head = requestHead('GET /mcp/v1 HTTP/1.1', { Host: host, ...bearer(token) });
    expect((await exchange(origin, head)).statuses, host).toEqual([status]);
  }
});

test('The same client in a page of another origin finds the authorization server, registers itself, and calls the tool', async () => {
  const page = await browser.newPage();
  await page.goto(application.url);
  const token = idp.oauthToken(userId, { audience: resource, scopes: ['profile'] });
  const [url, text, status] = await page.evaluate<[string, string, number]>(`(async () => {
    const stored = {};
    const connect = async (authProvider) => {
      const client = new mcp.Client({ name: 'page', version: '1.0.0' });
      await client.connect(new mcp.StreamableHTTPClientTransport(new URL('${resource}'), { authProvider }));
      return client;
    };
    await connect({
      redirectUrl: location.href,
      clientMetadata: { redirect_uris: [location.href] },
      clientInformation: () => stored.client,
      saveClientInformation: (client) => { stored.client = client; },
      tokens: () => undefined,
      saveTokens: () => {},
      redirectToAuthorization: ({ href }) => { stored.href = href; },
      saveCodeVerifier: () => {},
    }).catch(() => {});
    const client = await connect({ token: async () => '${token}' });
    const { status } = await fetch('${resource}', { headers: { authorization: 'Bearer ${token}' } });
    return [stored.href, (await client.callTool({ name: 'whoami' })).content[0].text, status];
  })()`);
  expect(url).toMatch(/\/oauth\/authorize\?.*scope=profile/);
  expect([text, status]).toEqual([await internalId(), 405]);
});

test('The doctor follows the 401 of the MCP server to its metadata', async () => {
  const check = async (more: object) => {
    const { stdout } = await runCommand('doctor', ['--json', '--url', origin], { ...environment, ...more });
    return JSON.parse(stdout).checks.find(({ name }: { name: string }) => name === 'service oauth');
  };
  expect(await check({})).toMatchObject({ status: 'ok' });
  expect(await check({ PUBLIC_ORIGIN: 'https://other.example' })).toMatchObject({ status: 'failure' });
});
