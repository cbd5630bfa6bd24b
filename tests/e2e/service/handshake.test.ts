import type { Request } from 'playwright';
import { beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../../dev/system/listen';
import {
  expiredSessionCookies,
  PASSWORD,
  shownLink,
  signInWithoutForm,
  visit,
} from '../../harness/browser/browser';
import { launchBrowser } from '../../harness/browser/chromium';
import {
  type ServiceProcess,
  startServiceProcess,
  startTestService,
  type TestService,
} from '../../harness/service';
import { stopAfterAll } from '../../vitest/stop-after-all';

const browser = stopAfterAll(await launchBrowser());

/**
 * A handshake redirects the browser through the identity provider to get a new session token for the service. The cases combine
 * three settings:
 * - whether the service has authorized parties, which are the origins whose session tokens it accepts.
 * - whether the provider passes the session token by a nonce or in a handshake token.
 * - whether the session token has an `azp` claim, which is the origin of the page that requested the token.
 */
const CASES = (['without', 'with'] as const).flatMap((parties) =>
  (['nonce', 'token'] as const).flatMap((format) =>
    (['with', 'without'] as const).map((azp) => [parties, format, azp] as const),
  ),
);

describe.each(['test', 'live'] as const)('with %s keys', (keys) => {
  let service: TestService;
  let withParties: ServiceProcess;
  beforeAll(async () => {
    service = await startTestService({ keys });
    const port = await freePort();
    const environment = {
      ...service.environment,
      IDP_AUTHORIZED_PARTIES: `http://localhost:${port}`,
    };
    withParties = await startServiceProcess(environment, port);
    return async () => {
      await withParties.stop();
      await service.stop();
    };
  });

  test.each(CASES)(
    `A handshake renews an expired session: ${keys} keys, %s authorized parties, handshake by %s, session token %s azp claim`,
    (parties, format, azp) => {
      const { url } = parties === 'with' ? withParties : service;
      const email = `${parties}-${format}-${azp}@${keys}.example`;
      service.idp.createUser({ email, password: PASSWORD });
      service.idp.setHandshake({ format, azp: azp === 'with' });
      // A service with authorized parties rejects an API request whose token lacks `azp`, so the browser console may show a
      // 401. The page then renews the token through the browser SDK, and the renewed token has `azp`.
      const expected = [/status of 401 .*\/users\/v1\/me/];
      return visit(browser, { url }, { expected }, async (page) => {
        await signInWithoutForm(page, email);
        const { userId } = await shownLink(page);
        await page.goto('about:blank');
        await page.context().addCookies(await expiredSessionCookies(page, { url, idp: service.idp }));
        const handshakes: Request[] = [];
        page.on('request', (request) => {
          if (request.url().includes('/v1/client/handshake?')) handshakes.push(request);
        });

        const response = await page.goto('/account');

        expect({ status: response?.status(), path: new URL(page.url()).pathname }).toEqual({
          status: 200,
          path: '/account',
        });
        expect(handshakes).toHaveLength(1);
        const [handshake] = handshakes;
        const headers = JSON.stringify(await (await handshake?.response())?.allHeaders());
        expect(headers).toContain(format === 'nonce' ? '__clerk_handshake_nonce=' : '__clerk_handshake=');
        expect((await shownLink(page)).userId).toBe(userId);
      });
    },
  );
});
