import { expect, test } from 'vitest';
import { OLD_SIGNING_SECRET } from '../harness/keys';
import { deliver, me, signatureHeaders, tokenFor, userCreated } from '../harness/requests';
import { sharedService } from '../vitest/shared-service';

// tests/unit/webhook.test.ts checks which deliveries are valid, and tests/service/openapi.test.ts each documented response.

const service = sharedService();
const { idsOf } = service.database;

const acknowledged = (eventType: string) => ({ status: 200, body: { received: true, eventType } });

test('The webhook registers the user of a user.created event, and a later request of the user gets the same internal id', async () => {
  expect(await deliver(service.url, userCreated('user_hook'))).toMatchObject(acknowledged('user.created'));
  const { body } = await me(service.url, tokenFor(service.idp, 'user_hook'));
  expect(await idsOf('user_hook')).toEqual([Object(body).userId]);
});

test('Repeated and reordered webhook deliveries do not create a second user', async () => {
  const body = userCreated('user_again');
  const headers = signatureHeaders(body);
  const updated = JSON.stringify({ type: 'test.updated', data: { id: 'user_again' } });
  expect(await deliver(service.url, updated)).toMatchObject(acknowledged('test.updated'));
  for (let delivery = 0; delivery < 3; delivery += 1) {
    expect(await deliver(service.url, body, headers)).toMatchObject(acknowledged('user.created'));
  }
  expect(await idsOf('user_again')).toHaveLength(1);
});

test('During a rotation, the webhook also accepts a signature by the previous secret', async () => {
  const body = userCreated('user_of_a_rotation');
  const headers = signatureHeaders(body, { secret: OLD_SIGNING_SECRET });
  expect(await deliver(service.url, body, headers)).toMatchObject(acknowledged('user.created'));
});
