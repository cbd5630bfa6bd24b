import { decodeJwt } from '@clerk/backend/jwt';
import { expect, test } from 'vitest';
import { z } from 'zod';
import type { Emulator } from '../src/emulator';
import { Client } from '../src/instance/data';
import { clerkFor, startForTest } from './helpers/emulator';
import { errorOf } from './helpers/requests';

// A handshake is a redirect of the browser through the emulator. It gives the application new session cookies, either in a
// token or in exchange for a nonce.

const PAGE = 'http://localhost:3000/account';
const PRODUCTION = { publishableKey: `pk_live_${Buffer.from('clerk.local.example$').toString('base64')}` };

/** Signs a user in. Returns a function that requests a handshake as the browser of the user. */
function signedInBrowser(provider: Emulator) {
  const now = Date.now();
  const { id } = provider.createUser({ email: 'page@example.com' });
  const row = { id: 'client_page', token: 'dvb_page', createdAt: now, updatedAt: now };
  const client = provider.store.clients.put(Client.parse(row));
  const session = provider.createSession(id);
  provider.store.sessions.put({ ...session, clientId: client.id });
  return async (query: Record<string, string> = { format: 'nonce' }) => {
    const search = new URLSearchParams({ redirect_url: PAGE, __clerk_db_jwt: client.token, ...query });
    const response = await fetch(`${provider.url}/v1/client/handshake?${search}`, {
      headers: { cookie: `__client=${client.token}` },
      redirect: 'manual',
    });
    const location = new URL(response.headers.get('location') ?? '');
    const setCookies = response.headers.getSetCookie();
    const passed = (name: string) =>
      location.searchParams.get(name) ??
      setCookies.find((each) => each.startsWith(`${name}=`))?.split(/[=;]/)[1];
    return {
      location,
      setCookies,
      nonce: passed('__clerk_handshake_nonce'),
      token: passed('__clerk_handshake'),
    };
  };
}

/** Exchanges a nonce for the cookies of its handshake, as the server of an application does with the Backend SDK. */
const payload = (emulator: Emulator, nonce = '', secretKey?: string) =>
  clerkFor(emulator, secretKey).clients.getHandshakePayload({ nonce });

/** Returns the claims of the session token in a list of cookies. */
function sessionClaims(cookies: readonly string[]) {
  const token = cookies.find((each) => each.startsWith('__session='))?.split(/[=;]/)[1] ?? '';
  return decodeJwt(token).payload;
}

const Handshake = z.object({ handshake: z.array(z.string()) });
const cookiesOfToken = (token = '') => Handshake.parse(decodeJwt(token).payload).handshake;

test('The SDK can exchange the nonce of a handshake for the session cookies only once', async () => {
  const provider = await startForTest();
  const handshake = signedInBrowser(provider);
  const { location, nonce, token } = await handshake();
  expect([location.origin + location.pathname, token]).toEqual([PAGE, undefined]);
  const { directives } = await payload(provider, nonce);
  expect(sessionClaims(directives)).toMatchObject({ azp: 'http://localhost:3000', sts: 'active' });
  expect((await errorOf(payload(provider, nonce))).status).toBe(404);
});

test('The nonce of a handshake expires after a minute', async () => {
  let time = Date.now();
  const provider = await startForTest({ clock: { now: () => time, after: () => () => undefined } });
  const handshake = signedInBrowser(provider);
  const [inTime, late] = [await handshake(), await handshake()];
  time += 59_000;
  expect((await payload(provider, inTime.nonce)).directives).not.toEqual([]);
  time += 1_000;
  expect((await errorOf(payload(provider, late.nonce))).status).toBe(404);
});

test('A production instance passes a handshake in a cookie, which the cookies of the handshake delete', async () => {
  const provider = await startForTest(PRODUCTION);
  const handshake = signedInBrowser(provider);
  const byNonce = await handshake();
  expect(byNonce.location.href).toBe(PAGE);
  expect(byNonce.setCookies.filter((each) => each.startsWith('__session'))).toEqual([]);
  expect((await payload(provider, byNonce.nonce)).directives).toContain(
    '__clerk_handshake_nonce=; Path=/; Max-Age=0',
  );
  const byToken = await handshake({});
  expect(byToken.location.href).toBe(PAGE);
  expect(cookiesOfToken(byToken.token)).toContain('__clerk_handshake=; Path=/; Max-Age=0');
});

test('A handshake uses a token unless both the SDK and the instance support nonces', async () => {
  const provider = await startForTest();
  const handshake = signedInBrowser(provider);
  const unrequested = await handshake({});
  const old = await handshake({ format: 'nonce', __clerk_api_version: '2025-04-10' });
  provider.setHandshake({ format: 'token' });
  const unsupported = await handshake();
  for (const { nonce, token } of [unrequested, old, unsupported]) {
    expect(nonce).toBeUndefined();
    expect(sessionClaims(cookiesOfToken(token))).toMatchObject({ azp: 'http://localhost:3000' });
  }
});

test('With the handshake option azp: false, only a renewed session token has the claim azp', async () => {
  const provider = await startForTest({ handshake: { azp: false } });
  const handshake = signedInBrowser(provider);
  const { directives } = await payload(provider, (await handshake()).nonce);
  const claims = sessionClaims(directives);
  expect(claims).toMatchObject({ sts: 'active' });
  expect(claims).not.toHaveProperty('azp');
  const renewed = await fetch(
    `${provider.url}/v1/client/sessions/${claims?.sid}/tokens?__clerk_db_jwt=dvb_page`,
    { method: 'POST', headers: { origin: 'http://localhost:3000' } },
  );
  const { jwt } = z.object({ jwt: z.string() }).parse(await renewed.json());
  expect(decodeJwt(jwt).payload).toMatchObject({ azp: 'http://localhost:3000' });
});
