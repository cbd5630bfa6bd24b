import { expect, test } from 'vitest';
import { startStubServer } from '../harness/dependencies/stub-server';
import { me, type ParsedResponse, tokenFor } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

/** Responses that the Backend API sends instead of its signing keys: description, status, content type and body. */
const RESPONSES = [
  ['an error', 500, 'application/json', '{"errors":[]}'],
  ['an HTML page', 200, 'text/html', '<html></html>'],
  ['null', 200, 'application/json', 'null'],
  ['an empty list', 200, 'application/json', '{"keys":[]}'],
] as const;

// The cases run in parallel, because they are slow: the SDK retries the request for the keys several times.
const cases = await Promise.all(
  RESPONSES.map(async ([what, status, type, body]) => {
    const backendApi = stopAfterAll(
      await startStubServer((_request, response) => {
        response.writeHead(status, { 'content-type': type }).end(body);
      }),
    );
    const environment = { IDP_JWT_KEY: '', CLERK_API_URL: backendApi.url };
    const service = stopAfterAll(await startTestService({ environment }));
    const responses: ParsedResponse[] = [];
    for (const id of ['user_1', 'user_2']) responses.push(await me(service.url, tokenFor(service.idp, id)));
    return { what, service, responses };
  }),
);

test.each(cases)(
  'If the identity provider returns $what instead of its keys, each of two requests gets a 401, and the service logs one warning',
  async ({ service, responses }) => {
    expect(responses).toHaveLength(2);
    for (const response of responses) {
      expect(response).toMatchObject({ status: 401, body: { message: 'Unauthorized' } });
    }
    const rejected = () => service.linesWith('"status":401');
    await expect.poll(rejected).toHaveLength(2);
    const [warning, ...others] = service.linesWith('"credential not verified"');
    expect(warning).toMatch(/"reason":"(?:jwk-[a-z-]+|unexpected-error)"|"TimeoutError"/);
    expect(others).toEqual([]);
    for (const line of rejected())
      expect(line).toMatch(/"reason":"(?:jwk-[a-z-]+|unexpected-error|not-verified)"/);
  },
);
