import { describe, expect, test } from 'vitest';
import { startStubServer } from '../harness/dependencies/stub-server';
import { cookie, now, send, tokenFor } from '../harness/requests';
import { startServiceProcess, startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

/**
 * The only authorized party: the frontend whose tokens the service accepts. The claim `azp` of a session token names the
 * frontend that requested the token.
 */
const FRONTEND = 'https://app.example.com';

/** Requests a page as a browser does when it navigates. */
const visit = (url: string, cookies: { cookie: string }) =>
  send(url, { headers: { accept: 'text/html', 'sec-fetch-dest': 'document', ...cookies } });

describe.each(['test', 'live'] as const)('with %s keys', async (keys) => {
  const service = stopAfterAll(
    await startTestService({ keys, environment: { IDP_AUTHORIZED_PARTIES: FRONTEND } }),
  );
  const backendApi = stopAfterAll(await startStubServer());
  const withStub = stopAfterAll(
    await startServiceProcess({ ...service.environment, CLERK_API_URL: backendApi.url }),
  );
  const token = (claims: object = {}) =>
    tokenFor(service.idp, 'user_of_a_page', { azp: FRONTEND, ...claims });
  /**
   * Cookies with an expired session token. The SDK gets a new token with a handshake: it redirects the browser to the identity
   * provider, which redirects back with a nonce. The SDK then exchanges the nonce for new cookies at the Backend API.
   */
  const expired = () => cookie(token({ iat: now() - 3600, nbf: now() - 3610, exp: now() - 3000 }));
  const SIGN_IN = /\/sign-in\?redirect_url=%2Faccount$/;

  test('The sign-in page redirects to `redirect_url` only if the visitor has a session and `redirect_url` is an absolute path of the service', async () => {
    const signIn = (target: string) => `${service.url}/sign-in?redirect_url=${encodeURIComponent(target)}`;
    const back = await visit(signIn('/account?tab=1'), cookie(token()));
    expect([back.status, back.headers.get('location')]).toEqual([307, '/account?tab=1']);
    const others = [
      'https://evil.example',
      '//evil.example',
      '/\\evil.example',
      '/\t/evil.example',
      '//[',
      '/.//evil.example',
      '/x/..//evil.example',
      '/%2e//evil.example',
      'account',
    ];
    for (const target of others)
      expect((await visit(signIn(target), cookie(token()))).status, target).toBe(200);
    const signedOut = { cookie: '__client_uat=0; __clerk_db_jwt=dvb_of_a_visitor' };
    expect((await visit(signIn('/account'), signedOut)).status).toBe(200);
  });

  test('A page treats a visitor with an expired session token and an unknown handshake nonce as signed out, and does not start a new handshake', async () => {
    const page = await visit(`${service.url}/?__clerk_handshake_nonce=nonce_unknown`, expired());
    expect({ status: page.status, location: page.headers.get('location') }).toEqual({
      status: 200,
      location: null,
    });
    const { headers } = await visit(
      `${service.url}/account?__clerk_handshake_nonce=nonce_unknown`,
      expired(),
    );
    expect(headers.get('location')).toMatch(SIGN_IN);
  });

  test('A handshake does not sign the user in if the provider returns a session token of a party that is not authorized', async () => {
    const foreign = token({ azp: 'https://blog.example.com' });
    backendApi.handler = (_request, response) => {
      const directives = [`__session=${foreign}; Path=/`, '__client_uat=1; Path=/'];
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ directives }));
    };
    const first = await visit(`${withStub.url}/account?__clerk_handshake_nonce=nonce_x`, expired());
    // With test keys, the first response sets the cookies and redirects to the URL of the page without the nonce. The second
    // visit follows this redirect as a browser does. With live keys, the SDK does not redirect, so the first response is that
    // of the page.
    const { headers } = keys === 'live' ? first : await visit(`${withStub.url}/account`, cookie(foreign));
    expect(backendApi.calls.at(-1)).toBe('GET /v1/clients/handshake_payload?nonce=nonce_x');
    expect(headers.get('location')).toMatch(SIGN_IN);
  });
});
