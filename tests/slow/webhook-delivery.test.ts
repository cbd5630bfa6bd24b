import { expect, test } from 'vitest';
import { SIGNING_SECRET } from '../harness/keys';
import { startServiceProcess, startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const NEW_SECRET = `whsec_${Buffer.from('the secret that is rotated in...').toString('base64')}`;

const service = stopAfterAll(await startTestService());
const { users } = service.database;

test('A rotation of the signing secret rejects no delivery while all processes of the service accept the old and the new secret', async () => {
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
