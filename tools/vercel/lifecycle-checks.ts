import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { waitUntil } from '../../dev/system/processes';
import { startOtlpReceiver } from '../../tests/harness/dependencies/otlp-receiver';
import {
  deliver,
  HOOK,
  me,
  register,
  signatureHeaders,
  tokenFor,
  userCreated,
} from '../../tests/harness/requests';
import type { TestDependencies } from '../../tests/harness/service';
import { otelVariables } from '../../tests/harness/telemetry';
import type { Deployment } from './deployment';
import type { Check } from './report';
import { countConnections } from './response-checks';

/**
 * Durations, in seconds, for which a check suspends the processes of the functions, as Vercel suspends an idle instance. The
 * first duration is the idle timeout of the connection pool. The second is much longer than this timeout.
 */
const FROZEN_SECONDS = [5, 60] as const;
const USERS_AT_ONCE = 4;

/** Starts the functions of the Vercel build with changed environment variables. An empty value unsets a variable. */
export type DeployWith = (changes: Readonly<Record<string, string>>) => Promise<Deployment>;

/** Sends a webhook request to the function, without the middleware. A suspended function gets the request when it resumes. */
function deliverTo(deployment: Deployment, body: string) {
  const headers = { ...signatureHeaders(body), 'content-type': 'application/json', 'x-matched-path': HOOK };
  return deployment.at(HOOK).invoke({ method: 'POST', url: HOOK, headers, body: Buffer.from(body) });
}

/** Returns the last warnings and errors in the logs. */
function lastLogLines(deployments: readonly Deployment[]): string {
  const lines = deployments.flatMap(({ output }) =>
    output()
      .split('\n')
      .filter((line) => /"(?:warn|error)"/.test(line)),
  );
  return lines.slice(-12).join('\n');
}

async function stopAfter(deployment: Deployment, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } finally {
    await deployment.stop();
  }
}

/** Returns the checks of startup, concurrent instances and suspension. */
export function lifecycleChecks(
  deployments: readonly Deployment[],
  dependencies: TestDependencies,
  deployWith: DeployWith,
): readonly Check[] {
  return [
    {
      title:
        'If variables are missing, a request to each function gets a 500, and the log of each function lists the missing variables',
      async run() {
        const incomplete = await deployWith({ DATABASE_URL: '', KV_REST_API_TOKEN: '' });
        await stopAfter(incomplete, async () => {
          const responses = incomplete.functions.map(({ invoke }) =>
            invoke({
              method: 'GET',
              url: '/health/alive',
              headers: { 'x-forwarded-host': 'localhost', 'x-forwarded-proto': 'https' },
              body: Buffer.alloc(0),
            }),
          );
          for (const { status } of await Promise.all(responses)) assert.equal(status, 500);
          for (const { name, output } of incomplete.functions) {
            const list = [
              'Invalid environment variables:',
              '  - DATABASE_URL is missing',
              '  - KV_REST_API_TOKEN is missing',
            ];
            assert.ok(output().includes(list.join('\n')), `${name}: ${output()}`);
          }
        });
      },
    },
    {
      title: 'A function exports telemetry after a response, without waiting for the export interval',
      async run() {
        const receiver = await startOtlpReceiver();
        // By default, spans are exported after 5 s and metrics after a minute. The metrics can arrive within ten seconds only
        // through the export after the response.
        const deployment = await deployWith({
          ...otelVariables(receiver),
          OTEL_BSP_SCHEDULE_DELAY: '',
          OTEL_METRIC_EXPORT_INTERVAL: '',
        });
        await stopAfter(deployment, async () => {
          assert.equal((await me(deployment.url, tokenFor(dependencies.idp, 'user_observed'))).status, 200);
          const isExported = () => receiver.spans().length > 0 && receiver.metrics().length > 0;
          assert.ok(await waitUntil(isExported, 10_000));
        }).finally(receiver.stop);
      },
    },
    {
      title: `Concurrent requests to the guarded route, the register route and the webhook of two instances give each of ${USERS_AT_ONCE} users one row and one id`,
      async run() {
        // Warms up the middleware and the function that serves the three routes. A burst could exceed the timeouts of a cold
        // process on a busy machine.
        for (const { url } of deployments) await me(url, tokenFor(dependencies.idp, 'user_known'));
        const users = Array.from({ length: USERS_AT_ONCE }, (_, index) => `user_at_once_${index}`);
        await Promise.all(
          users.flatMap((user) =>
            deployments.map(async ({ url }) => {
              const token = tokenFor(dependencies.idp, user);
              const responses = await Promise.all([
                me(url, token),
                register(url, token, { identityProviderUserId: user }),
                deliver(url, userCreated(user)),
              ]);
              const [row] = await dependencies.database.rowsOf(user);
              for (const { status, headers } of responses)
                assert.ok(
                  status === 200 || status === 201,
                  `${status} ${headers.get('x-vercel-error')}\n${lastLogLines(deployments)}`,
                );
              for (const { body } of responses.slice(0, 2)) assert.equal(Object(body).userId, row?.id);
            }),
          ),
        );
        for (const user of users) assert.equal((await dependencies.database.rowsOf(user)).length, 1);
      },
    },
    ...FROZEN_SECONDS.map((seconds) => ({
      title: `An instance responds to the next request after ${seconds} s of suspension, even if its connections were reset`,
      async run() {
        const known = tokenFor(dependencies.idp, 'user_known');
        for (const { url } of deployments) {
          await me(url, known);
          await register(url, known, {
            identityProviderUserId: `user_before_${seconds}_${new URL(url).port}`,
          });
        }
        assert.ok((await countConnections(dependencies)) >= deployments.length, 'no connection is open');
        const running = () =>
          deployments.flatMap(({ functions }) => functions.flatMap((each) => each.instance() ?? []));
        const instances = running();
        for (const { pid } of instances) process.kill(pid, 'SIGSTOP');
        for (const { proxy } of [dependencies.database, dependencies.kv]) {
          await proxy.treat('reset');
          await proxy.treat('forward');
        }
        await pause(seconds * 1_000);
        const pending = deployments.map(async (deployment) => {
          const name = `${seconds}_${new URL(deployment.url).port}`;
          const token = tokenFor(dependencies.idp, `user_thawed_${name}`);
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
        // The requests now wait for the suspended instances.
        await pause(500);
        for (const { pid } of instances) process.kill(pid, 'SIGCONT');
        const statuses = await Promise.all(pending);
        for (const each of statuses) assert.deepEqual(each, [200, 200, 200, 201], lastLogLines(deployments));
        const pids = running().map(({ pid }) => pid);
        for (const { pid } of instances) assert.ok(pids.includes(pid), 'a process has ended');
      },
    })),
  ];
}
