import { withService } from '../../bench/with-service';
import { startOtlpReceiver } from '../../tests/harness/dependencies/otlp-receiver';
import { emitAllMetrics, metricsTable, otelVariables } from '../../tests/harness/telemetry';

/** `npm run telemetry:metrics`: prints the metrics of the service in the format of the table in docs/telemetry.md. */
const receiver = await startOtlpReceiver();
await withService({ environment: otelVariables(receiver) }, emitAllMetrics);
process.stdout.write(`${metricsTable(receiver.metrics())}\n`);
await receiver.stop();
