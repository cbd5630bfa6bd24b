import { createClerkClient } from '@clerk/backend';
import { expect, test } from 'vitest';
import { manualClock } from '../src/testing/manual-clock';
import { SECRET_KEY, SIGNING_SECRET, startProvider } from './helpers/emulator';
import { startHttpServer } from './helpers/http-server';
import { stopAfterTest } from './helpers/stop';

const start = async (...options: Parameters<typeof startProvider>) =>
  stopAfterTest(await startProvider(...options));

test('restore() brings deleted users and ended sessions back, removes later users and sends no events', async () => {
  const provider = await start();
  const { id } = provider.createUser({ email: 'kept@example.com', password: 'correct horse' });
  const session = provider.createSession(id);
  const snapshot = provider.snapshot();
  const sent = provider.webhooks.list();

  provider.deleteUser(id);
  provider.createUser({ email: 'later@example.com' });
  provider.restore(snapshot);
  const { users, sessions } = createClerkClient({
    secretKey: SECRET_KEY,
    apiUrl: provider.url,
    telemetry: { disabled: true },
  });
  expect((await users.getUserList()).data.map((user) => user.id)).toEqual([id]);
  expect(await sessions.getSession(session.id)).toMatchObject({ status: 'active' });
  expect(provider.webhooks.list()).toEqual(sent);
});

test('A snapshot that was stored as JSON can be restored in another emulator and restored twice', async () => {
  const first = await start();
  const { id } = first.createUser({ email: 'seed@example.com' });
  const snapshot = JSON.parse(JSON.stringify(first.snapshot()));
  const second = await start();
  for (let time = 0; time < 2; time += 1) {
    second.restore(snapshot);
    expect(second.store.users.all().map((user) => user.id)).toEqual([id]);
    second.deleteUser(id);
  }
});

test('Changes of a snapshot by the caller do not change the emulator', async () => {
  const provider = await start();
  const { id } = provider.createUser({ email: 'copy@example.com' });
  const snapshot = provider.snapshot();
  for (const user of snapshot.users) user.publicMetadata['admin'] = true;
  expect(provider.store.users.get(id)?.publicMetadata).toEqual({});
});

test('If a value is not a snapshot, restore() throws and keeps the data', async () => {
  const provider = await start();
  provider.createUser({ email: 'unchanged@example.com' });
  const invalid = { ...provider.snapshot(), sessions: [{ id: 'sess_1' }] };
  // @ts-expect-error The rows lack fields.
  expect(() => provider.restore(invalid)).toThrow('sessions');
  expect(provider.store.users.size()).toBe(1);
});

test('After restore(), only the deliveries that were pending at the time of the snapshot are sent', async () => {
  const clock = manualClock();
  const received: (string | null)[] = [];
  const endpoint = stopAfterTest(
    await startHttpServer(({ headers }) => {
      received.push(headers.get('svix-id'));
      return new Response(null, { status: 200 });
    }),
  );
  const provider = await start({ clock, webhook: { url: endpoint.url, secret: SIGNING_SECRET } });
  const done = provider.webhooks.send('done', {});
  await provider.webhooks.idle();
  provider.webhooks.pause();
  const before = provider.webhooks.send('before', {});
  const snapshot = provider.snapshot();
  provider.webhooks.resume();
  await provider.webhooks.idle();
  provider.webhooks.pause();
  provider.webhooks.send('after', {});
  provider.webhooks.redeliver(done.id);
  provider.restore(snapshot);
  provider.webhooks.resume();
  await provider.webhooks.idle();
  expect(received).toEqual([done.id, before.id, before.id]);
});
