import { expect, test } from 'vitest';
import { startImpostor } from '../harness/parts/impostor';
import { type Answer, me, tokenFor } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

/** What the provider's Backend API answers in place of keys: a name, the status, the type and the body. */
const ANSWERS = [
  ['a failure', 500, 'application/json', '{"errors":[]}'],
  ['a page', 200, 'text/html', '<html></html>'],
  ['null', 200, 'application/json', 'null'],
  ['no keys', 200, 'application/json', '{"keys":[]}'],
] as const;

// All at once: the SDK asks again and again before it gives up.
const asked = await Promise.all(
  ANSWERS.map(async ([what, status, type, body]) => {
    const backendApi = stopAfterAll(
      await startImpostor((_request, response) => {
        response.writeHead(status, { 'content-type': type }).end(body);
      }),
    );
    const environment = { IDP_JWT_KEY: '', CLERK_API_URL: backendApi.url };
    const service = stopAfterAll(await startTestService({ environment }));
    const answers: Answer[] = [];
    for (const id of ['user_1', 'user_2']) answers.push(await me(service.url, tokenFor(service.idp, id)));
    return { what, service, answers };
  }),
);

test.each(asked)(
  'without IDP_JWT_KEY, and $what in place of the keys: 401, one warning a minute, and the reason in each line',
  async ({ service, answers }) => {
    expect(answers).toHaveLength(2);
    for (const answer of answers) {
      expect(answer).toMatchObject({ status: 401, body: { message: 'Unauthorized' } });
    }
    const refused = () => service.linesWith('"status":401');
    await expect.poll(refused).toHaveLength(2);
    const [warning, ...others] = service.linesWith('"credential not verified"');
    expect(warning).toMatch(/"reason":"(?:jwk-[a-z-]+|unexpected-error)"/);
    expect(others).toEqual([]);
    for (const line of refused()) expect(line).toContain('"reason":"not-verified"');
  },
);
