import { createServer, type Server } from 'node:http';
import { afterAll, describe, expect, test } from 'vitest';
import { listen } from '../../dev/system/listen';
import { me, tokenFor } from '../harness/requests';
import { startTestService, type TestService } from '../harness/service';

const started: { service: TestService; backendApi: Server }[] = [];
afterAll(async () => {
  for (const { service, backendApi } of started) {
    await service.stop();
    backendApi.closeAllConnections();
    await new Promise((resolve) => backendApi.close(resolve));
  }
});

describe('without IDP_JWT_KEY, keys that cannot be had are said so in the log', () => {
  test.each<[string, number, string, string]>([
    ['a failure', 500, 'application/json', '{"errors":[]}'],
    ['a page', 200, 'text/html', '<html></html>'],
    ['null', 200, 'application/json', 'null'],
    ['no keys', 200, 'application/json', '{"keys":[]}'],
  ])('%s: 401, one warning a minute, and the reason in each line', async (_what, status, type, body) => {
    const backendApi = createServer((_request, response) => {
      response.writeHead(status, { 'content-type': type }).end(body);
    });
    const port = await listen(backendApi);
    const service = await startTestService({
      environment: { IDP_JWT_KEY: '', CLERK_API_URL: `http://127.0.0.1:${port}` },
    });
    started.push({ service, backendApi });
    for (const id of ['user_1', 'user_2']) {
      expect(await me(service.url, tokenFor(service.idp, id))).toMatchObject({
        status: 401,
        body: { message: 'Unauthorized' },
      });
    }
    const lines = (text: string) =>
      (service.processes[0]?.output() ?? '').split('\n').filter((line) => line.includes(text));
    await expect.poll(() => lines('"status":401')).toHaveLength(2);
    expect(lines('"credential not verified"')).toHaveLength(1);
    for (const line of lines('"status":401')) {
      expect(line).toMatch(/"reason":"(?:jwk-[a-z-]+|unexpected-error)"/);
    }
  });
});
