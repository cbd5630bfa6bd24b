import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { expect, test } from 'vitest';
import { freePort, listen } from '../../dev/system/listen';
import { responds, startProcess } from '../../dev/system/start-process';
import { startOtlpReceiver } from '../harness/dependencies/otlp-receiver';
import { deliver, me, send, tokenFor, userCreated } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterTest } from '../vitest/stop-after-all';
import { temporaryFolder } from '../vitest/temporary-folder';

const hasPrometheus = spawnSync('prometheus', ['--version']).status === 0;
const notRun = hasPrometheus
  ? ''
  : ' (NOT RUN: no prometheus on this machine; Debian: apt-get install prometheus)';
const folder = temporaryFolder();

const underscored = (name: string) => name.replaceAll('.', '_');

/** Translates an OTLP export to the text format as collectors do, because Debian's Prometheus does not receive OTLP. */
function translate(body = '{"resourceMetrics":[]}'): string {
  let text = '';
  for (const { scopeMetrics } of JSON.parse(body).resourceMetrics)
    for (const { metrics } of scopeMetrics)
      for (const { name, unit, sum, gauge, histogram } of metrics) {
        const { isMonotonic, dataPoints } = sum ?? gauge ?? histogram;
        const ending = `${unit === 's' ? '_seconds' : unit === 'ms' ? '_milliseconds' : ''}${isMonotonic ? '_total' : ''}`;
        for (const { attributes, asDouble, count, bucketCounts = [], explicitBounds } of dataPoints) {
          let labels = '';
          for (const { key, value } of attributes) labels += `${underscored(key)}="${Object.values(value)}",`;
          const metric = `${underscored(name)}${ending}`;
          text += histogram ? `${metric}_count{${labels}} ${count}\n` : `${metric}{${labels}} ${asDouble}\n`;
          let below = 0;
          for (const [bucket, inBucket] of bucketCounts.entries()) {
            below += inBucket;
            text += `${metric}_bucket{${labels}le="${explicitBounds[bucket] ?? '+Inf'}"} ${below}\n`;
          }
        }
      }
  return text;
}

test.skipIf(!hasPrometheus)(
  `Prometheus accepts the alert rules, and each query of the dashboard finds metrics of a service${notRun}`,
  async () => {
    const receiver = stopAfterTest(await startOtlpReceiver());
    const environment = { ...receiver.environment, OTEL_TRACES_EXPORTER: 'none' };
    const { url, idp } = stopAfterTest(await startTestService({ environment }));
    const metrics = createServer((_request, response) => {
      response.setHeader('content-type', 'text/plain; version=0.0.4');
      response.end(translate(receiver.received().split('\n').findLast(Boolean)));
    });
    const target = `127.0.0.1:${await listen(metrics)}`;
    const address = `127.0.0.1:${await freePort()}`;
    const configuration = path.join(folder, 'prometheus.yml');
    // JSON is valid YAML.
    writeFileSync(
      configuration,
      JSON.stringify({
        rule_files: [path.resolve('docs/telemetry/alerts.yaml')],
        scrape_configs: [
          { job_name: 'service', scrape_interval: '1s', static_configs: [{ targets: [target] }] },
        ],
      }),
    );
    const options = [
      `--config.file=${configuration}`,
      `--storage.tsdb.path=${folder}`,
      `--web.listen-address=${address}`,
    ];
    await stopAfterTest(startProcess('prometheus', options)).ready(() =>
      responds(`http://${address}/-/ready`),
    );

    const queries: string[] = [];
    for (const { targets } of JSON.parse(readFileSync('docs/telemetry/dashboard.json', 'utf8')).panels)
      for (const { expr } of targets) queries.push(expr.replaceAll('$__rate_interval', '1m'));
    const findUnanswered = async () => {
      const token = tokenFor(idp, `user_${Math.random()}`);
      for (const request of ['miss', 'hit'])
        expect(await me(url, token), request).toMatchObject({ status: 200 });
      await deliver(url, userCreated('user_by_webhook'));
      await send(`${url}/health/ready`);
      const bodies = await Promise.all(
        queries.map((query) => send(`http://${address}/api/v1/query?query=${encodeURIComponent(query)}`)),
      );
      return queries.filter(
        (_query, index) => !/"value":\[[\d.]+,"[\d.e+-]+"\]/.test(JSON.stringify(bodies[index]?.body)),
      );
    };
    await expect.poll(findUnanswered, { timeout: 60_000 }).toEqual([]);
  },
);
