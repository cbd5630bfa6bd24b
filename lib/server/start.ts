import { onShutdown } from '../concurrency/shutdown';
import { environment, InvalidEnvironmentError } from '../env';
import { describeError } from '../errors/describe-error';
import { log } from '../log';
import { telemetrySettings } from '../telemetry/settings';
import { enableTelemetry } from '../telemetry/with-span';
import { redactConsole } from './redact-console';

/**
 * Ends the process with one list of all problems, and says once what is valid and yet not wise. An error thrown at
 * start-up would not end it: Next.js logs that and serves on. The exit can go when `next start` fails over it.
 */
function checkEnvironment(): void {
  try {
    const { IDP_SECRET_KEY, IDP_AUTHORIZED_PARTIES } = environment();
    if (IDP_SECRET_KEY.startsWith('sk_live_') && IDP_AUTHORIZED_PARTIES === undefined) {
      log.warn('IDP_AUTHORIZED_PARTIES is not set: sessions of every subdomain are accepted');
    }
  } catch (error) {
    process.stderr.write(`${error instanceof InvalidEnvironmentError ? error.message : 'Start-up failed'}\n`);
    process.exit(1);
  }
}

/** Where the standard variables ask for it: otherwise nothing of the SDK is loaded. No fault of it stops a start. */
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

/** Start-up, before the first request is answered. */
export async function start(): Promise<void> {
  checkEnvironment();
  redactConsole();
  await startTelemetry();
}
