import { afterEach, expect, test } from 'vitest';
import { me, tokenFor } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

// tests/unit/kv.test.ts checks which responses of the cache are failures.

const service = stopAfterAll(await startTestService());

/** Sends a request of a user. Returns the cache result in the Server-Timing header: `hit`, `miss` or `bypass`. */
const cacheOf = async (id: string) =>
  (await me(service.url, tokenFor(service.idp, id))).headers
    .get('server-timing')
    ?.match(/cache;desc=(\w+)/)?.[1];

/** Sends requests until the circuit breaker closes and the cache is used again. */
const recovers = () => expect.poll(() => cacheOf('user_probe')).toBe('hit');

afterEach(async () => {
  await service.kv.proxy.treat('forward');
  await recovers();
});

const count = (message: string) => service.linesWith(`"msg":"${message}"`).length;

test.each([
  ['refuses connections', 'refuse'],
  ['drops all bytes', 'black-hole'],
] as const)(
  'If the cache %s, the service reads users from the database, skips the cache after a few failures, and uses it again after the outage',
  async (_outage, treatment) => {
    const id = `user_outage_${treatment}`;
    const token = tokenFor(service.idp, id);
    const { body } = await me(service.url, token);
    const before = { skipped: count('cache skipped'), back: count('cache in use again') };
    await service.kv.proxy.treat(treatment);
    // This test does not check the timeout of a cache call, because `me` waits up to 30 s. tests/unit/kv.test.ts checks it.
    expect(await me(service.url, token)).toMatchObject({ status: 200, body });
    expect(await me(service.url, tokenFor(service.idp, `${id}_new`))).toMatchObject({ status: 200 });
    await expect
      .poll(async () => {
        expect(await me(service.url, token)).toMatchObject({ status: 200, body });
        return count('cache skipped') - before.skipped;
      })
      .toBe(1);
    for (let user = 0; user < 6; user += 1) expect(await cacheOf(`${id}_${user}`)).toBe('bypass');
    expect(count('cache skipped') - before.skipped, 'no further line in the log').toBe(1);
    expect(count('cache in use again') - before.back).toBe(0);
    await service.kv.proxy.treat('forward');
    await recovers();
    await expect.poll(() => count('cache in use again') - before.back).toBe(1);
  },
);
