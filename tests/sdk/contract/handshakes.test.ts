import type { Emulator } from 'clerk-emulator';
import { beforeAll, describe, expect, test } from 'vitest';
import { now, tokenFor } from '../../harness/requests';
import { KEYS, loadService, ORIGIN, routeHeaders, type Service, startInstance } from '../service';

// A handshake renews the cookies of a browser whose session token has expired. The SDK redirects the page to the provider. The
// provider redirects back with a signed token that contains the new cookies, or with a nonce. The SDK exchanges the nonce for
// the cookies through the Backend API.

/** Maximum number of requests of one navigation. It ends a redirect loop. */
const MAX_REQUESTS = 10;

/** Applies `Set-Cookie` headers to the cookies of a browser. */
function storeCookies(cookies: Map<string, string>, { headers }: Response): void {
  for (const line of headers.getSetCookie()) {
    const [pair = '', ...attributes] = line.split(';');
    const [name = '', ...value] = pair.split('=');
    const isDeleted = attributes.some((attribute) =>
      /^ *(?:max-age=0|expires=thu, 01 jan 1970.*)$/i.test(attribute),
    );
    if (isDeleted) cookies.delete(name);
    else cookies.set(name, value.join('='));
  }
}

/** Returns the id of a new user, an expired session token of this user, and browser cookies that contain the token. */
function expiredBrowser(provider: Emulator) {
  const createdAt = Date.now();
  const { id } = provider.createUser({ email: `user_${provider.store.users.all().length}@example.com` });
  const client = provider.store.clients.put({
    ...{ id: `client_${id}`, token: `dvb_${id}`, createdAt, updatedAt: createdAt },
    ...{ signInId: null, signUpId: null, lastStrategy: null },
  });
  provider.store.sessions.put({ ...provider.createSession(id), clientId: client.id });
  const times = { iat: now() - 3600, nbf: now() - 3610, exp: now() - 3000 };
  const expired = tokenFor(provider, id, { azp: ORIGIN, ...times });
  const cookies = new Map([
    ['__session', expired],
    ['__client_uat', '1'],
    ['__clerk_db_jwt', client.token],
    ['__client', client.token],
  ]);
  return { id, expired, cookies };
}

/** Navigates to /account as a browser does, and follows redirects. Returns the last response and all requested paths. */
async function navigate(service: Service, provider: Emulator, cookies: Map<string, string>) {
  let url = new URL('/account', ORIGIN);
  const paths: string[] = [];
  for (;;) {
    paths.push(url.pathname);
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const target = url.pathname + url.search;
    const response =
      url.origin === ORIGIN
        ? await service.pass(target, { cookie, accept: 'text/html', 'sec-fetch-dest': 'document' })
        : await fetch(provider.url + target, { headers: { cookie }, redirect: 'manual' });
    storeCookies(cookies, response);
    const location = response.headers.get('location');
    if (location === null || paths.length === MAX_REQUESTS) return { response, paths };
    url = new URL(location, url);
  }
}

/**
 * Formats of the redirect, each with and without `azp` in the session token. The claim `azp` (authorized party) contains the
 * origin for which the token was issued.
 */
const CASES = (['nonce', 'token'] as const).flatMap((format) =>
  (['with', 'without'] as const).map((azp) => [format, azp] as const),
);

describe.each(['test', 'live'] as const)('With %s keys', (keys) => {
  let provider: Emulator;
  let service: Service;
  beforeAll(async () => {
    provider = await startInstance(KEYS[keys]);
    service = await loadService({
      ...KEYS[keys],
      IDP_JWT_KEY: provider.publicKeyPem,
      IDP_AUTHORIZED_PARTIES: ORIGIN,
      CLERK_API_URL: provider.url,
    });
    return () => provider.stop();
  });

  test.each(CASES)(
    'A handshake renews the session cookie and ends on the page with a signed-in user (redirect with a %s, session token %s azp)',
    async (format, azp) => {
      provider.setHandshake({ format, azp: azp === 'with' });
      const { expired, cookies } = expiredBrowser(provider);
      const { response, paths } = await navigate(service, provider, cookies);
      expect(paths.filter((path) => path === '/v1/client/handshake')).toHaveLength(1);
      expect(paths.length).toBeLessThanOrEqual(4);
      expect(paths.at(-1)).toBe('/account');
      expect(response.headers.get('location')).toBeNull();
      const state = routeHeaders(response);
      expect(state.get('x-clerk-auth-status')).toBe('signed-in');
      expect(cookies.get('__session')).not.toBe(expired);
      expect(state.get('x-clerk-auth-token')).toBe(cookies.get('__session'));
    },
  );

  test('The SDK sets the status signed-out for a page request with an expired session token and an unknown handshake nonce', async () => {
    const { cookies } = expiredBrowser(provider);
    cookies.set('__clerk_handshake_nonce', 'nonce_unknown');
    const { response, paths } = await navigate(service, provider, cookies);
    expect(paths).toEqual(['/account']);
    expect(routeHeaders(response).get('x-clerk-auth-status')).toBe('signed-out');
  });
});
