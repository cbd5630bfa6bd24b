import type { HandledRequest, Observer, RequestFields } from '../core/ports';
import { processState } from './process-state';

/** Records spans and metrics (docs/telemetry.md). Recording does not throw and does not delay a request. */
export interface Telemetry {
  readonly withSpan: Observer['span'];
  /** Runs the handling of a request in a span, as a part of the client's trace. The span ends with the work. */
  withRequest<T>(headers: Pick<Headers, 'get'>, work: () => Promise<T>): Promise<T>;
  /** Records a request, also as the name and the attributes of its span. */
  recordRequest(request: HandledRequest): void;
  /** Records the registration that a page or a server action caused, if there was one. */
  recordPageUser(fields: RequestFields): void;
  breakerOpened(): void;
  breakerClosed(): void;
  /** Returns the ids of the current span if the span is sampled. */
  spanIds(): { readonly trace_id: string; readonly span_id: string } | undefined;
  /** Exports the pending spans and metrics. Resolves when the export has succeeded or failed, or after 1.5 s. */
  flush(): Promise<void>;
}

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
