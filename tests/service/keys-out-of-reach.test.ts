import { describe, test } from 'vitest';
import { startImpostor } from '../harness/parts/impostor';
import { me, tokenFor } from '../harness/requests';
import { startTestService } from '../harness/service';

describe('without IDP_JWT_KEY, keys that cannot be had are said so in the log', () => {
  test.concurrent.for<[string, number, string, string]>([
    ['a failure', 500, 'application/json', '{"errors":[]}'],
    ['a page', 200, 'text/html', '<html></html>'],
    ['null', 200, 'application/json', 'null'],
    ['no keys', 200, 'application/json', '{"keys":[]}'],
  ])(
    '%s: 401, one warning a minute, and the reason in each line',
    async ([_what, status, type, body], { expect, onTestFinished }) => {
      const backendApi = await startImpostor((_request, response) => {
        response.writeHead(status, { 'content-type': type }).end(body);
      });
      onTestFinished(backendApi.stop);
      const service = await startTestService({
        environment: { IDP_JWT_KEY: '', CLERK_API_URL: backendApi.url },
      });
      onTestFinished(service.stop);
      for (const id of ['user_1', 'user_2']) {
        expect(await me(service.url, tokenFor(service.idp, id))).toMatchObject({
          status: 401,
          body: { message: 'Unauthorized' },
        });
      }
      const refused = () => service.linesWith('"status":401');
      await expect.poll(refused).toHaveLength(2);
      const [warning, ...others] = service.linesWith('"credential not verified"');
      expect(warning).toMatch(/"reason":"(?:jwk-[a-z-]+|unexpected-error)"/);
      expect(others).toEqual([]);
      for (const line of refused()) expect(line).toContain('"reason":"not-verified"');
    },
  );
});
