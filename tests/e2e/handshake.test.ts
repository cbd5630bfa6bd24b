import type { Request } from 'playwright';
import { freePort } from '../../dev/system/listen';
import { expiredSessionCookies, shownLink, signInNewUser } from '../harness/browser/browser';
import { test as base, expect } from '../harness/browser/test';
import { startServiceProcess } from '../harness/service';

const test = base.extend<{ hasParties: boolean }, { withParties: { url: string } }>({
  /** A process of the service that has authorized parties, which are the origins whose session tokens it accepts. */
  withParties: [
    async ({ service }, use) => {
      const port = await freePort();
      const parties = { IDP_AUTHORIZED_PARTIES: `http://localhost:${port}` };
      const started = await startServiceProcess({ ...service.environment, ...parties }, port);
      await use(started);
      await started.stop();
    },
    { scope: 'worker', timeout: 90_000 },
  ],
  hasParties: [false, { option: true }],
  baseURL: ({ hasParties, service, withParties }, use) => use(hasParties ? withParties.url : service.url),
});

// A handshake redirects the browser through the identity provider to get a new session token for the service. The provider passes
// the token by a nonce or in a handshake token. The token may lack `azp`, which is the origin of the page that requested it.
for (const { hasParties, format, azp } of [
  { hasParties: false, format: 'nonce', azp: true },
  { hasParties: false, format: 'token', azp: false },
  { hasParties: true, format: 'token', azp: true },
  { hasParties: true, format: 'nonce', azp: false },
] as const) {
  test.describe(`Authorized parties: ${hasParties}, handshake by ${format}, token with azp: ${azp}`, () => {
    test.use({ hasParties });
    test('A handshake renews a session token that expired while the browser showed another site', async ({
      page,
      service,
      baseURL: url = '',
    }) => {
      service.idp.setHandshake({ format, azp });
      await signInNewUser(page, service, `${hasParties}-${format}@example.com`);
      const { userId } = await shownLink(page);
      await page.goto('about:blank');
      await page.context().addCookies(await expiredSessionCookies(page, { url, idp: service.idp }));
      const handshakes: Request[] = [];
      page.on('request', (request) => {
        if (request.url().includes('/v1/client/handshake?')) handshakes.push(request);
      });

      const response = await page.goto('/account');

      expect(response?.status()).toBe(200);
      expect(page.url()).toBe(`${url}/account`);
      expect(handshakes).toHaveLength(1);
      const headers = JSON.stringify(await (await handshakes[0]?.response())?.allHeaders());
      expect(headers).toContain(format === 'nonce' ? '__clerk_handshake_nonce=' : '__clerk_handshake=');
      expect((await shownLink(page)).userId).toBe(userId);
    });
  });
}
