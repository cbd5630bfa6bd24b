import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { waitUntil } from '../../dev/system/processes';
import { startOtlpReceiver } from '../../tests/harness/parts/otlp-receiver';
import {
  deliver,
  HOOK,
  me,
  register,
  signatureHeaders,
  tokenFor,
  userCreated,
} from '../../tests/harness/requests';
import type { TestParts } from '../../tests/harness/service';
import { otelVariables } from '../../tests/harness/telemetry';
import { connectionsOf } from './checks-of-answers';
import type { Deployment } from './deployment';
import type { Check } from './report';

/** As long as the pool keeps an idle connection (lib/db.ts), and much longer. */
const FROZEN_SECONDS = [5, 60] as const;
const USERS_AT_ONCE = 4;

/** Starts the functions with these variables changed; an empty one is unset. */
export type DeployWith = (changes: Readonly<Record<string, string>>) => Promise<Deployment>;

/** A POST to the webhook past the middleware, which a frozen function finds when it goes on. */
function deliverTo(deployment: Deployment, body: string) {
  const headers = { ...signatureHeaders(body), 'content-type': 'application/json', 'x-matched-path': HOOK };
  return deployment.at(HOOK).invoke({ method: 'POST', url: HOOK, headers, body: Buffer.from(body) });
}

/** What there is to read of a failure. */
function lastLinesOf(deployments: readonly Deployment[]): string {
  const lines = deployments.flatMap(({ output }) =>
    output()
      .split('\n')
      .filter((line) => /"(?:warn|error)"/.test(line)),
  );
  return lines.slice(-12).join('\n');
}

async function onlyWhile(deployment: Deployment, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } finally {
    await deployment.stop();
  }
}

/** Checks of how functions begin, live side by side, and are suspended. */
export function checksOfLife(
  deployments: readonly Deployment[],
  parts: TestParts,
  deployWith: DeployWith,
): readonly Check[] {
  return [
    {
      title: 'a variable that is missing: every function ends, the answer is a 500, and the log has the list',
      async run() {
        const incomplete = await deployWith({ DATABASE_URL: '', KV_REST_API_TOKEN: '' });
        await onlyWhile(incomplete, async () => {
          const answers = incomplete.functions.map(({ invoke }) =>
            invoke({
              method: 'GET',
              url: '/health/alive',
              headers: { 'x-forwarded-host': 'localhost', 'x-forwarded-proto': 'https' },
              body: Buffer.alloc(0),
            }),
          );
          for (const { status } of await Promise.all(answers)) assert.equal(status, 500);
          for (const { name, output } of incomplete.functions) {
            const list = [
              'The environment is not complete:',
              '  - DATABASE_URL is missing',
              '  - KV_REST_API_TOKEN is missing',
            ];
            assert.ok(output().includes(list.join('\n')), `${name}: ${output()}`);
          }
        });
      },
    },
    {
      title: 'telemetry leaves a function after its answer, long before the clock would send it',
      async run() {
        const receiver = await startOtlpReceiver();
        // Metrics once a minute: within ten seconds, only what follows an answer sends them.
        const observed = await deployWith({
          ...otelVariables(receiver),
          OTEL_BSP_SCHEDULE_DELAY: '',
          OTEL_METRIC_EXPORT_INTERVAL: '',
        });
        await onlyWhile(observed, async () => {
          assert.equal((await me(observed.url, tokenFor(parts.idp, 'user_observed'))).status, 200);
          const hasLeft = () => receiver.spans().length > 0 && receiver.metrics().length > 0;
          assert.ok(await waitUntil(hasLeft, 10_000));
        }).finally(receiver.stop);
      },
    },
    {
      title: `${USERS_AT_ONCE} users by guard, register and webhook at once, in two instances: one row and one id each`,
      async run() {
        // A burst on a cold process of a busy machine would meet the service's own bounds of time.
        for (const { url } of deployments) await me(url, tokenFor(parts.idp, 'user_known'));
        const users = Array.from({ length: USERS_AT_ONCE }, (_, index) => `user_at_once_${index}`);
        await Promise.all(
          users.flatMap((user) =>
            deployments.map(async ({ url }) => {
              const token = tokenFor(parts.idp, user);
              const answers = await Promise.all([
                me(url, token),
                register(url, token, { identityProviderUserId: user }),
                deliver(url, userCreated(user)),
              ]);
              const [row] = await parts.database.rowsOf(user);
              for (const { status, headers } of answers)
                assert.ok(
                  status === 200 || status === 201,
                  `${status} ${headers.get('x-vercel-error')}\n${lastLinesOf(deployments)}`,
                );
              for (const { body } of answers.slice(0, 2)) assert.equal(Object(body).userId, row?.id);
            }),
          ),
        );
        for (const user of users) assert.equal((await parts.database.rowsOf(user)).length, 1);
      },
    },
    ...FROZEN_SECONDS.map((seconds) => ({
      title: `frozen for ${seconds} s, its connections cut meanwhile: the next request is answered`,
      async run() {
        const known = tokenFor(parts.idp, 'user_known');
        for (const { url } of deployments) {
          await me(url, known);
          await register(url, known, {
            identityProviderUserId: `user_before_${seconds}_${new URL(url).port}`,
          });
        }
        assert.ok((await connectionsOf(parts)) >= deployments.length, 'no connection is open');
        const running = () =>
          deployments.flatMap(({ functions }) => functions.flatMap((each) => each.instance() ?? []));
        const instances = running();
        for (const { pid } of instances) process.kill(pid, 'SIGSTOP');
        for (const { proxy } of [parts.database, parts.kv]) {
          await proxy.treat('reset');
          await proxy.treat('forward');
        }
        await pause(seconds * 1_000);
        const asked = deployments.map(async (deployment) => {
          const name = `${seconds}_${new URL(deployment.url).port}`;
          const token = tokenFor(parts.idp, `user_thawed_${name}`);
          const [delivered, resolved, created] = await Promise.all([
            deliverTo(deployment, userCreated(`user_delivered_${name}`)),
            me(deployment.url, known),
            me(deployment.url, token),
          ]);
          const after = await register(deployment.url, token, {
            identityProviderUserId: `user_after_${name}`,
          });
          return [delivered.status, resolved.status, created.status, after.status];
        });
        // They have come by now, and wait.
        await pause(500);
        for (const { pid } of instances) process.kill(pid, 'SIGCONT');
        const statuses = await Promise.all(asked);
        for (const each of statuses) assert.deepEqual(each, [200, 200, 200, 201], lastLinesOf(deployments));
        const pids = running().map(({ pid }) => pid);
        for (const { pid } of instances) assert.ok(pids.includes(pid), 'a process ended over it');
      },
    })),
  ];
}
