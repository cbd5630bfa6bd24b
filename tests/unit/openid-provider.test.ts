import { exportJWK, generateKeyPair } from 'jose';
import Provider, { type JWK } from 'oidc-provider';
import { beforeAll, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { jwtProvider } from '#lib/authentication/jwt-provider';
import { startStubServer } from '../harness/dependencies/stub-server';
import { stopAfterAll } from '../vitest/stop-after-all';

// The issuer is `oidc-provider`, an OpenID provider that is certified and that others maintain. It issues access tokens as JWTs
// (RFC 9068).

const AUDIENCE = 'https://api.example.com';
const REDIRECT = 'https://app.example.com/callback';
const server = stopAfterAll(await startStubServer());
const issuer = server.url;

beforeAll(() => {
  // The provider prints notices about its settings for development.
  vi.spyOn(console, 'info').mockReturnValue();
  vi.spyOn(console, 'warn').mockReturnValue();
});

async function newKey(kid: string): Promise<JWK> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  return { ...(await exportJWK(privateKey)), kty: 'RSA', kid, alg: 'RS256', use: 'sig' };
}

/** Starts the issuer, or starts it again with other keys. It signs with the first one. */
function start(...keys: JWK[]): void {
  const app = { redirect_uris: [REDIRECT], token_endpoint_auth_method: 'none' as const };
  const provider = new Provider(issuer, {
    clients: [
      { client_id: 'web', ...app },
      { client_id: 'partner', ...app },
      {
        client_id: 'worker',
        client_secret: 'secret',
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      },
    ],
    jwks: { keys },
    cookies: { keys: ['a key for tests'] },
    findAccount: (_context, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
    ttl: { AccessToken: 600, ClientCredentials: 600, Session: 600, Grant: 600, Interaction: 600 },
    features: {
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => AUDIENCE,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: 'notes',
          audience: AUDIENCE,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  });
  server.handler = provider.callback();
}

const Token = z.object({ access_token: z.string() });
async function requestToken(body: Record<string, string>): Promise<string> {
  const response = await fetch(`${issuer}/token`, { method: 'POST', body: new URLSearchParams(body) });
  return Token.parse(await response.json()).access_token;
}

const machineToken = () =>
  requestToken({ grant_type: 'client_credentials', client_id: 'worker', client_secret: 'secret' });

/** Signs a user in with a browser's requests and returns the access token that the client gets (RFC 6749, 4.1, and RFC 7636). */
async function userToken(client: string): Promise<string> {
  const cookies = new Map<string, string>();
  const verifier = 'v'.repeat(43);
  const challenge = Buffer.from(
    await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier)),
  ).toString('base64url');
  let url = `${issuer}/auth?${new URLSearchParams({
    client_id: client,
    redirect_uri: REDIRECT,
    response_type: 'code',
    scope: 'openid notes',
    code_challenge: challenge,
    code_challenge_method: 'S256',
  })}`;
  let form: URLSearchParams | undefined;
  for (let step = 0; step < 12 && !url.startsWith(REDIRECT); step++) {
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ');
    const request = form ? { method: 'POST', body: form } : {};
    const response = await fetch(url, { redirect: 'manual', headers: { cookie }, ...request });
    for (const [pair = ''] of response.headers.getSetCookie().map((line) => line.split(';')))
      cookies.set(pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1));
    const page = await response.text();
    const location = response.headers.get('location');
    const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1];
    form = location || prompt === undefined ? undefined : new URLSearchParams({ prompt, login: 'ada' });
    if (location) url = new URL(location, url).href;
  }
  const code = new URL(url).searchParams.get('code') ?? '';
  const grant = { grant_type: 'authorization_code', redirect_uri: REDIRECT, code_verifier: verifier };
  return requestToken({ ...grant, client_id: client, code });
}

test('A user of a certified OpenID provider keeps one id while it rotates its keys. Tokens of machines and of other clients are rejected', async () => {
  const [first, second] = [await newKey('first'), await newKey('second')];
  start(first);
  const provider = jwtProvider({ issuer, audience: AUDIENCE, clients: ['web'], prefix: 'other|' });
  const verdict = async (token: string) =>
    provider.authenticate(new Request(AUDIENCE, { headers: { authorization: `Bearer ${token}` } }));

  const before = await userToken('web');
  expect(await verdict(before)).toMatchObject({ user: 'other|ada' });
  start(second, first);
  const after = await userToken('web');
  expect(await verdict(after)).toMatchObject({ user: 'other|ada' });
  expect(await verdict(before)).toMatchObject({ user: 'other|ada' });

  expect(await verdict(await userToken('partner'))).toEqual({ reason: 'foreign-client' });
  expect(await verdict(await machineToken())).toEqual({ reason: 'foreign-client' });
  const worker = jwtProvider({ issuer, audience: AUDIENCE, clients: ['worker'], prefix: 'other|' });
  const headers = { authorization: `Bearer ${await machineToken()}` };
  expect(await worker.authenticate(new Request(AUDIENCE, { headers }))).toEqual({ reason: 'foreign-client' });
});
