import { onShutdown } from '../concurrency/shutdown-state';
import { environment, InvalidEnvironmentError } from '../env';
import { describeError } from '../errors/describe-error';
import { log } from '../log';
import { telemetrySettings } from '../telemetry/settings';
import { enableTelemetry } from '../telemetry/with-span';
import { redactConsole } from './redact-console';

/**
 * Prints all problems and exits if the environment is invalid. Calls `process.exit()` instead of throwing, because
 * instrumentation.ts calls this code. If instrumentation.ts throws, Next.js logs the error but still serves requests. Logs a
 * warning if IDP_AUTHORIZED_PARTIES is not set and the keys are live keys, which are the keys of a production instance.
 */
function checkEnvironment(): void {
  try {
    const { IDP_SECRET_KEY, IDP_AUTHORIZED_PARTIES } = environment();
    if (IDP_SECRET_KEY.startsWith('sk_live_') && IDP_AUTHORIZED_PARTIES === undefined) {
      log.warn(
        'IDP_AUTHORIZED_PARTIES is not set: the service accepts sessions of every subdomain of your domain',
      );
    }
  } catch (error) {
    process.stderr.write(`${error instanceof InvalidEnvironmentError ? error.message : 'Start-up failed'}\n`);
    process.exit(1);
  }
}

/** Starts OpenTelemetry if its standard variables enable it. An error does not prevent the start of the service. */
async function startTelemetry(): Promise<void> {
  const settings = telemetrySettings(process.env);
  if (!settings) return;
  try {
    const telemetry = (await import('../telemetry/sdk')).startTelemetry(settings);
    enableTelemetry(telemetry);
    onShutdown(() => telemetry.flush());
  } catch (error) {
    log.warn({ error: describeError(error) }, 'telemetry could not be started');
  }
}

/** Prepares the process before its first request. */
export async function start(): Promise<void> {
  checkEnvironment();
  redactConsole();
  await startTelemetry();
}
