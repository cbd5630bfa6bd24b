import { expect, test } from 'vitest';
import { startOtlpReceiver } from '../harness/dependencies/otlp-receiver';
import { me, tokenFor } from '../harness/requests';
import { startDependencies, startServiceProcess } from '../harness/service';
import { stopAfterAll, stopAfterTest } from '../vitest/stop-after-all';

// tests/slow/private-data.test.ts checks which spans and metrics the service exports.

const receiver = stopAfterAll(await startOtlpReceiver());
const service = stopAfterAll(await startDependencies({ environment: receiver.environment }));
const token = tokenFor(service.idp, 'user_caller');

/** Starts a process of the service for one test. */
const startProcess = async (environment: Record<string, string>) =>
  stopAfterTest(await startServiceProcess({ ...service.environment, ...environment }));

/** Export intervals of an hour, so that no export is due during a test. */
const LONG_INTERVALS = { OTEL_BSP_SCHEDULE_DELAY: '3600000', OTEL_METRIC_EXPORT_INTERVAL: '3600000' };

test('On SIGTERM, the service exports the remaining telemetry to the endpoint and with the headers of the standard variables', async () => {
  const own = stopAfterTest(await startOtlpReceiver());
  const OTEL_EXPORTER_OTLP_HEADERS = 'authorization=Bearer%20of-the-collector';
  const stopping = await startProcess({
    ...own.environment,
    ...LONG_INTERVALS,
    OTEL_EXPORTER_OTLP_HEADERS,
  });
  await me(stopping.url, token);
  expect(own.calls).toEqual([]);
  process.kill(stopping.pid, 'SIGTERM');
  expect(await stopping.exited).toBe(0);
  expect(own.calls.toSorted()).toEqual([
    '/v1/metrics application/json Bearer of-the-collector',
    '/v1/traces application/json Bearer of-the-collector',
  ]);
  expect(stopping.output()).not.toContain('of-the-collector');
});

test.each(['hang', 'fail', 'stop'] as const)(
  'A collector that accepts no data (%s) affects neither responses nor the shutdown',
  async (treatment) => {
    const own = await startOtlpReceiver();
    if (treatment === 'stop') await own.stop();
    else stopAfterTest(own).treat(treatment);
    const running = await startProcess(own.environment);
    for (let request = 0; request < 5; request += 1)
      expect(await me(running.url, token)).toMatchObject({ status: 200 });
    if (treatment !== 'hang')
      await expect.poll(() => running.output()).toContain('telemetry could not be sent');
    process.kill(running.pid, 'SIGTERM');
    expect(await running.exited).toBe(0);
    expect(running.output().split('telemetry could not be sent').length).toBeLessThanOrEqual(2);
  },
);

test('The service starts if OpenTelemetry cannot be started, and logs the problem', async () => {
  const running = await startProcess({ OTEL_METRIC_EXPORT_INTERVAL: '-1' });
  expect(await me(running.url, token)).toMatchObject({ status: 200 });
  expect(running.output()).toContain('telemetry could not be started');
});
