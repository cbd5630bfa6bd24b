import { describe, expect, test } from 'vitest';
import { adjustableClock } from '../harness/dependencies/adjustable-clock';
import { SIGNING_SECRET } from '../harness/keys';
import { deliver, me, now, signatureHeaders, tokenFor, userCreated } from '../harness/requests';
import { startServiceProcess, startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const NEW_SECRET = `whsec_${Buffer.from('the secret that is rotated in...').toString('base64')}`;
const SECOND = 1000;
const HOUR = 3600 * SECOND;
/** Times of the delivery attempts in milliseconds after the event. The webhook sender is the identity provider. */
const ATTEMPTS = [0, 5, 305, 2105, 9305, 27_305, 63_305, 99_305].map((seconds) => seconds * SECOND);

const clock = stopAfterAll(adjustableClock());
const service = stopAfterAll(await startTestService({ clock, environment: clock.environment }));
const { rowsOf, users } = service.database;

describe('The retry schedule of the webhook sender', () => {
  test.each([
    ['3 hours', 3 * HOUR, 6],
    ['18 hours', 18 * HOUR, 8],
  ])(
    'After a database outage of %s, a retry of the webhook sender delivers the event, and the event registers one user',
    async (what, outage, expected) => {
      const id = `user_down_${what}`;
      await service.database.proxy.treat('refuse');
      const delivery = service.idp.webhooks.send('user.created', { id });
      const current = () => service.idp.store.deliveries.get(delivery.id);
      const elapsed: number[] = [0];
      for (let attempts = 1; attempts < expected; attempts += 1) {
        await expect.poll(() => current()?.attempts.length === attempts).toBe(true);
        expect(current()?.status).toBe('pending');
        const [last = 0, next = 0] = ATTEMPTS.slice(attempts - 1);
        if (next >= outage) await service.database.proxy.treat('forward');
        // Advances the clock to the timer of the next attempt. `advance(ms)` selects the earliest timer that is due in at least
        // `ms`. The next attempt is due in slightly less than `next - last` ms, because some real time has passed since the
        // last attempt. The factor 0.9 allows for this difference. With this factor, `advance` still ignores earlier timers,
        // such as a response timeout of 15 s.
        elapsed.push((elapsed.at(-1) ?? 0) + clock.advance(0.9 * (next - last)));
      }
      const settled = await service.idp.webhooks.settled(delivery.id);
      expect(settled.status).toBe('delivered');
      expect(settled.attempts.map(({ status }) => status)).toEqual([...Array(expected - 1).fill(500), 200]);
      expect(elapsed.map((at) => Math.round(at / (60 * SECOND)))).toEqual(
        ATTEMPTS.slice(0, expected).map((at) => Math.round(at / (60 * SECOND))),
      );
      expect(await rowsOf(id)).toHaveLength(1);
    },
  );

  test('The webhook rejects a valid signature whose timestamp is hours old', async () => {
    const body = userCreated('user_stale');
    // The tests above have advanced the clock of the service by hours. `now` returns the real time.
    const headers = signatureHeaders(body, { timestamp: String(now()) });
    expect(await deliver(service.url, body, headers)).toMatchObject({
      status: 400,
      body: { message: 'Invalid webhook signature' },
    });
    expect(await rowsOf('user_stale')).toEqual([]);
  });
});

test('Late, repeated and reordered events create each user once', async () => {
  const ids = Array.from({ length: 20 }, (_, index) => `user_disorder_${index}`);
  const { webhooks } = service.idp;
  // Two other events of each user precede the first user.created event. Requests to GET /users/v1/me register the first five
  // users before any event.
  const types = ['test.deleted', 'test.updated', 'user.created', 'test.updated', 'user.created'];
  await Promise.all(
    ids
      .slice(0, 5)
      .map((id) =>
        me(service.url, tokenFor(service.idp, id, { exp: Math.floor(clock.now() / SECOND) + 60 })),
      ),
  );
  const events = types.flatMap((type, turn) =>
    (turn % 2 ? ids : ids.toReversed()).map((id) => webhooks.send(type, { id }).id),
  );
  for (const event of events) expect((await webhooks.settled(event)).status).toBe('delivered');
  for (const event of events.toReversed()) webhooks.redeliver(event);
  for (const event of events) {
    const { attempts } = await webhooks.settled(event);
    expect(attempts.map(({ status }) => status)).toEqual([200, 200]);
  }
  expect(await users('user_disorder_%')).toEqual(ids.toSorted());
});

test('A rotation of the signing secret causes no rejected delivery if all processes of the service accept the old and the new secret while the provider changes the secret', async () => {
  const start = (secrets: string) =>
    startServiceProcess({ ...service.environment, IDP_WEBHOOK_SIGNING_SECRET: secrets });
  const [both, only] = await Promise.all([start(`${SIGNING_SECRET} ${NEW_SECRET}`), start(NEW_SECRET)]);
  const { webhooks } = service.idp;
  let turn = 0;
  const statuses: (number | null)[] = [];
  /** Delivers six events, alternately to the processes at `urls`. The provider signs each event with all `secrets`. */
  const phase = async (urls: readonly string[], secrets: readonly string[]) => {
    for (let event = 0; event < 6; event += 1) {
      const url = urls[event % urls.length] ?? service.url;
      webhooks.setEndpoint({ url: `${url}/webhooks/idp/v1/user-created`, secrets });
      const { id } = webhooks.send('user.created', { id: `user_rotated_${turn}` });
      turn += 1;
      const current = () => service.idp.store.deliveries.get(id)?.attempts ?? [];
      await expect.poll(() => current().length > 0).toBe(true);
      statuses.push(current()[0]?.status ?? null);
    }
  };
  try {
    await phase([service.url], [SIGNING_SECRET]);
    await phase([service.url, both.url], [SIGNING_SECRET]); // Processes are replaced one by one.
    await phase([both.url], [SIGNING_SECRET]);
    await phase([both.url], [NEW_SECRET, SIGNING_SECRET]); // The provider signs with both secrets for a day.
    await phase([both.url], [NEW_SECRET]);
    await phase([both.url, only.url], [NEW_SECRET]);
    await phase([only.url], [NEW_SECRET]);
    expect(statuses).toEqual(Array(turn).fill(200));
    expect(await users('user_rotated_%')).toHaveLength(turn);
    // If no process accepts both secrets, deliveries fail, because a process rejects a signature by a secret that it lacks.
    await phase([only.url], [SIGNING_SECRET]);
    await phase([service.url], [NEW_SECRET]);
    expect(statuses.slice(-12)).toEqual(Array(12).fill(400));
  } finally {
    webhooks.setEndpoint(undefined);
    await Promise.all([both.stop(), only.stop()]);
  }
});
