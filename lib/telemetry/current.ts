import { processState } from '../base/process-state';
import type { Observer } from '../core/ports';
import type { Telemetry } from './port';

const state = processState('telemetry', (): { current?: Telemetry } => ({}));

/** Returns the telemetry of this process, or undefined if it is disabled. */
export const telemetry = (): Telemetry | undefined => state.current;

/** Enables telemetry in all bundles of this process. Log lines then contain the ids of the current span if it is sampled. */
export function enableTelemetry(enabled: Telemetry): void {
  state.current = enabled;
}

/** Runs the handling of a request in its span. If telemetry is disabled, runs `work` without a span. */
export const withRequestSpan = <T>(headers: Pick<Headers, 'get'>, work: () => Promise<T>): Promise<T> =>
  state.current ? state.current.withRequest(headers, work) : work();

/** Runs `work` in a span that records the outcome. If telemetry is disabled, runs `work` without a span. */
export const withSpan: Observer['span'] = (name, work, outcomeOf) =>
  state.current ? state.current.withSpan(name, work, outcomeOf) : work();
