import { join } from 'node:path';
import { Webhook } from 'svix';
import { expect, test } from 'vitest';
import { z } from 'zod';
import type { EmulatorOptions } from '../src/emulator';
import { manualClock } from '../src/testing';
import { startForTest } from './helpers/emulator';
import { startHttpServer } from './helpers/http-server';
import { stopAfterTest } from './helpers/stop';
import { temporaryFolder } from './helpers/temporary-folder';

const oldSecret = `whsec_${Buffer.from('an old secret of some thirty bytes').toString('base64')}`;
const newSecret = `whsec_${Buffer.from('a new secret of some thirty bytes!').toString('base64')}`;
const folder = temporaryFolder();

interface Received {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Starts an endpoint that responds with the given statuses in order, and then with 200. A 302 redirects to the same server. */
async function receiver(...statuses: number[]) {
  const received: Received[] = [];
  const server = await startHttpServer(async (request) => {
    received.push({ headers: Object.fromEntries(request.headers), body: await request.text() });
    return new Response('a'.repeat(2000), {
      status: statuses.shift() ?? 200,
      headers: { location: '/again' },
    });
  });
  return { url: `${stopAfterTest(server).url}/hook`, received };
}

const start = (url: string, options: Partial<EmulatorOptions> = {}) =>
  startForTest({ webhook: { url, secret: oldSecret }, retryScale: 0, ...options });

function verifies(secret: string, { headers, body }: Received): boolean {
  try {
    new Webhook(secret).verify(body, headers);
    return true;
  } catch {
    return false;
  }
}

test('The emulator sends a signed event for a created or deleted user and for a created or revoked session', async () => {
  const { url, received } = await receiver();
  const provider = await start(url);
  const user = provider.createUser({ email: 'ada@example.com', firstName: 'Ada' });
  provider.revokeSession(provider.createSession(user.id).id);
  provider.deleteUser(user.id);
  await provider.webhooks.idle();

  const types = received.map(({ body }) => z.object({ type: z.string() }).parse(JSON.parse(body)).type);
  expect(types.sort()).toEqual(['session.created', 'session.revoked', 'user.created', 'user.deleted']);
  expect(received.every((delivery) => verifies(oldSecret, delivery))).toBe(true);
  expect(received.some((delivery) => verifies(newSecret, delivery))).toBe(false);
  const created = received.find(({ body }) => body.includes('user.created'));
  expect(JSON.parse(created?.body ?? '')).toMatchObject({
    object: 'event',
    type: 'user.created',
    data: {
      id: user.id,
      object: 'user',
      first_name: 'Ada',
      email_addresses: [{ email_address: 'ada@example.com' }],
    },
  });
});

test('A failing delivery is attempted eight times at the intervals of Clerk, with the same id and body', async () => {
  const { url, received } = await receiver(...Array.from({ length: 8 }, (_, index) => 500 + index));
  const clock = manualClock();
  const provider = await start(url, { clock, retryScale: 1 });
  const { id } = provider.webhooks.send('user.created', { id: 'user_1' });
  const delivery = () => provider.store.deliveries.get(id);

  const waits: number[] = [];
  for (let attempts = 1; attempts < 8; attempts += 1) {
    await expect.poll(() => delivery()?.attempts.length).toBe(attempts);
    waits.push(clock.advance() / 1000);
  }
  const failed = await provider.webhooks.settled(id);

  expect(waits).toEqual([5, 300, 1800, 7200, 18_000, 36_000, 36_000]);
  expect(failed.status).toBe('failed');
  expect(failed.nextTryAt).toBeNull();
  expect(failed.attempts.map(({ status }) => status)).toEqual([500, 501, 502, 503, 504, 505, 506, 507]);
  expect(new Set(received.map(({ headers, body }) => headers['svix-id'] + body)).size).toBe(1);
  expect(new Set(received.map(({ headers }) => headers['svix-timestamp'])).size).toBe(8);
});

test('A delivery attempt fails at a redirect, and records the first 1,024 bytes of the response', async () => {
  const { url, received } = await receiver(302, 200);
  const provider = await start(url);
  const delivery = await provider.webhooks.settled(provider.webhooks.send('a.b', {}).id);
  expect(delivery.attempts.map(({ status }) => status)).toEqual([302, 200]);
  expect(delivery.attempts[0]?.answer).toBe('a'.repeat(1024));
  expect(received).toHaveLength(2);
});

test('A delivery attempt fails if the endpoint does not respond within 15 seconds', async () => {
  const silent = stopAfterTest(await startHttpServer(() => new Promise(() => {})));
  const clock = manualClock();
  const provider = await start(silent.url, { clock, retryScale: 1 });
  const { id } = provider.webhooks.send('a.b', {});
  expect(clock.advance()).toBe(15_000);
  const attempt = { status: null, answer: 'No response within 15 seconds', durationMilliseconds: 15_000 };
  await expect.poll(() => provider.store.deliveries.get(id)?.attempts).toMatchObject([attempt]);
});

test('A delivery attempt whose connection is refused is recorded with its error', async () => {
  const { url } = await receiver();
  const provider = await start(url.replace(/:\d+/, ':1'));
  const delivery = await provider.webhooks.settled(provider.webhooks.send('a.b', {}).id);
  expect(delivery.attempts[0]?.answer).toMatch(/ECONNREFUSED|bad port/);
});

type Webhooks = Awaited<ReturnType<typeof start>>['webhooks'];

test.each([
  ['paused', ({ pause }: Webhooks) => pause(), ({ resume }: Webhooks) => resume()],
  [
    'missing',
    ({ setEndpoint }: Webhooks) => setEndpoint(undefined),
    ({ setEndpoint }: Webhooks, url: string) => setEndpoint({ url, secrets: [oldSecret] }),
  ],
])('While the webhook endpoint is %s, events wait', async (_, close, open) => {
  const { url, received } = await receiver();
  const clock = manualClock();
  const { webhooks } = await start(url, { clock });
  close(webhooks);
  const sent = ['a.first', 'a.second'].map((type) => webhooks.send(type, {}));
  // Each delivery attempt sets a timer for its timeout. No timer is set, so no attempt is in flight.
  expect(() => clock.advance()).toThrow('No timer is set');
  open(webhooks, url);
  for (const { id } of sent) expect((await webhooks.settled(id)).attempts).toHaveLength(1);
  expect(received).toHaveLength(2);
});

test('An event that is redelivered during an attempt stays pending', async () => {
  const responses: ((response: Response) => void)[] = [];
  const server = await startHttpServer(() => new Promise<Response>((resolve) => responses.push(resolve)));
  const provider = await start(stopAfterTest(server).url);
  const { id } = provider.webhooks.send('user.created', { id: 'user_1' });
  await expect.poll(() => responses.length).toBe(1);
  provider.webhooks.redeliver(id);
  responses[0]?.(new Response(null, { status: 200 }));
  await expect.poll(() => responses.length).toBe(2);
  responses[1]?.(new Response(null, { status: 500 }));
  await expect.poll(() => responses.length).toBe(3);
  responses[2]?.(new Response(null, { status: 200 }));
  const { status, failures, attempts } = await provider.webhooks.settled(id);
  expect({ status, failures, attempts: attempts.map((attempt) => attempt.status) }).toEqual({
    status: 'delivered',
    failures: 1,
    attempts: [200, 500, 200],
  });
});

test('A failed redelivery does not change the status "delivered", and a redelivery can deliver a failed event', async () => {
  const { url } = await receiver(200, ...Array.from({ length: 16 }, () => 500));
  const provider = await start(url);
  const statuses = new Set<string>();
  const { id } = await provider.webhooks.settled(provider.webhooks.send('a.delivered', {}).id);
  const unsubscribe = provider.store.onChange(() => {
    statuses.add(provider.store.deliveries.get(id)?.status ?? 'none');
  });
  provider.webhooks.redeliver(id);
  const again = await provider.webhooks.settled(id);
  unsubscribe();
  expect(again.attempts.map(({ status }) => status)).toEqual([200, ...Array.from({ length: 8 }, () => 500)]);
  expect(again.status).toBe('delivered');
  expect([...statuses]).toEqual(['delivered']);

  expect(() => provider.webhooks.redeliver('msg_unknown')).toThrow('msg_unknown');

  const failed = await provider.webhooks.settled(provider.webhooks.send('a.failed', {}).id);
  expect(failed.status).toBe('failed');
  expect(provider.webhooks.redeliver(failed.id).status).toBe('pending');
  expect((await provider.webhooks.settled(failed.id)).status).toBe('delivered');
});

test('The setting delaySeconds delays the first attempt of an event, and copies repeats a delivery with the same id', async () => {
  const { url, received } = await receiver();
  const clock = manualClock();
  const { webhooks } = await start(url, { clock });
  webhooks.configure({ delaySeconds: 3600, copies: 2 });
  const { id } = webhooks.send('a.b', {});
  expect(clock.advance()).toBe(3_600_000);
  await webhooks.settled(id);
  expect(received.map(({ headers }) => headers['svix-id'])).toEqual([id, id]);
});

test('While an endpoint has two signing secrets, a delivery can be verified with either', async () => {
  const { url, received } = await receiver();
  const provider = await start(url);
  for (const secrets of [[oldSecret], [newSecret, oldSecret], [newSecret]]) {
    provider.webhooks.setEndpoint({ url, secrets });
    await provider.webhooks.settled(provider.webhooks.send('a.b', {}).id);
  }
  expect(received.map((delivery) => verifies(oldSecret, delivery))).toEqual([true, true, false]);
  expect(received.map((delivery) => verifies(newSecret, delivery))).toEqual([false, true, true]);
});

test('The emulator keeps the latest 1,000 finished deliveries', async () => {
  const { url } = await receiver();
  const provider = await start(url);
  for (let index = 0; index <= 1000; index += 1) provider.webhooks.send(`n.${index}`, {});
  await provider.webhooks.idle();
  const types = provider.webhooks.list().map(({ type }) => type);
  expect(types).toHaveLength(1000);
  expect(types.at(-1)).toBe('n.1000');
});

test('After a restart with the same data file, the emulator sends the pending deliveries', async () => {
  const dataFile = join(folder, 'sub', 'provider.json');
  const { url, received } = await receiver();

  const before = await start(url, { dataFile });
  before.webhooks.pause();
  before.webhooks.send('a.b', {});
  await before.stop();
  expect(received).toEqual([]);

  const after = await start(url, { dataFile });
  await after.webhooks.idle();
  expect(received).toHaveLength(1);
});
