import { expect, test, vi } from 'vitest';
import { createGuards } from '#lib/core/guard';
import { createLink } from '#lib/core/link';
import type { Sessions, Store } from '#lib/core/ports';
import { createRoute, json } from '#lib/core/route';
import { firstOf } from '#lib/core/sessions';

// The example of docs/structure.md: a link over a store in memory, with a provider whose tokens are ids.
function memoryStore(name: string): Store {
  const ids = new Map<string, string>();
  return {
    async find(kind, providerId) {
      const id = ids.get(kind + providerId);
      return id === undefined ? { state: 'none' } : { state: 'linked', id };
    },
    async insert(kind, providerId) {
      if (ids.has(kind + providerId)) return undefined;
      return ids.set(kind + providerId, `${name} ${ids.size + 1}`).get(kind + providerId);
    },
    isForgotten: async () => false,
    isLostRace: () => false,
  };
}
const userOf = (header: string | null) =>
  header === null ? undefined : { user: header.replace('Bearer ', '') };
const tokens: Sessions = { authenticate: ({ headers }) => userOf(headers.get('authorization')) };
const link = createLink({ store: memoryStore('only') });
const { guard } = createGuards(link, tokens, createRoute(link.observer));
const route = guard(async (_request, { userId }) => json({ userId }));

const context = { params: Promise.resolve({}) };
const requestOf = (user: string) =>
  new Request('https://localhost/me', { headers: { authorization: `Bearer ${user}` } });

test('The example links a user once, and rejects a request without a credential', async () => {
  for (const [user, userId] of [
    ['ada', 'only 1'],
    ['bob', 'only 2'],
    ['ada', 'only 1'],
  ] as const)
    expect(await (await route(requestOf(user), context)).json()).toEqual({ userId });
  expect((await route(new Request('https://localhost/me'), context)).status).toBe(401);
});

test('Two links in one process share neither ids, nor registrations in flight, nor observers', async () => {
  let release = () => {};
  const paused = new Promise<void>((resolve) => (release = resolve));
  const start = (name: string) => {
    const store = memoryStore(name);
    const insert = vi.fn<Store['insert']>((...args) => paused.then(() => store.insert(...args)));
    const handled = vi.fn();
    const own = createLink({ store: { ...store, insert }, observer: { handled } });
    const guards = createGuards(own, tokens, createRoute(own.observer));
    return { route: guards.guard(async (_request, { userId }) => json({ userId })), insert, handled };
  };
  const links = [start('one'), start('other')];
  const responses = links.flatMap((link) => [
    link.route(requestOf('ada'), context),
    link.route(requestOf('ada'), context),
  ]);
  await vi.waitUntil(() => links.every(({ insert }) => insert.mock.calls.length > 0));
  release();
  const bodies = await Promise.all(responses.map(async (response) => (await response).json()));
  expect(bodies.map(({ userId }) => userId)).toEqual(['one 1', 'one 1', 'other 1', 'other 1']);
  expect(links.map(({ insert, handled }) => [insert.mock.calls.length, handled.mock.calls.length])).toEqual([
    [1, 2],
    [1, 2],
  ]);
});

test('Of several providers, the first one that finds a credential decides, also if it rejects the credential', async () => {
  const verdicts = [undefined, { reason: 'expired' }, { user: 'ada' }];
  const all = firstOf(
    verdicts.map((verdict) => ({ authenticate: () => verdict })),
    1_000,
  );
  expect(await all.authenticate(new Request('https://localhost'))).toEqual({ reason: 'expired' });
});
