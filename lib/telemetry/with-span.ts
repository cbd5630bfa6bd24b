import { type RequestLogFields, setSpanIds } from '../log';
import { processState } from '../process-state';

/** The names of the service's spans and the outcomes of each. If the work of a span throws, the outcome is `failed`. */
export interface SpanOutcomes {
  readonly guard: 'passed' | 'rejected';
  readonly 'cache read': 'hit' | 'miss' | 'error';
  readonly 'cache write': 'stored' | 'error';
  readonly register: 'created' | 'existing' | 'forgotten';
  readonly 'verify webhook': 'verified' | 'rejected';
}

/** A request that has a response from a route or from the middleware. */
export interface CompletedRequest {
  readonly method: string;
  /** The pattern of the route. It must not contain data of the client. */
  readonly route: string;
  readonly status: number;
  readonly seconds: number;
  readonly logFields: RequestLogFields;
}

/** Records spans and metrics (docs/telemetry.md). Recording does not throw and does not delay a request. */
export interface Telemetry {
  withSpan<S extends keyof SpanOutcomes, T>(
    name: S,
    work: () => Promise<T>,
    outcomeOf: (result: T) => SpanOutcomes[S],
  ): Promise<T>;
  recordRequest(request: CompletedRequest): void;
  /** Records the registration that a page or a server action caused, if there was one. */
  recordPageUser(fields: RequestLogFields): void;
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
  setSpanIds(enabled.spanIds);
}

/** Runs `work` in a span that records the outcome. If telemetry is disabled, runs `work` without a span. */
export function withSpan<S extends keyof SpanOutcomes, T>(
  name: S,
  work: () => Promise<T>,
  outcomeOf: (result: T) => SpanOutcomes[S],
): Promise<T> {
  return state.current ? state.current.withSpan(name, work, outcomeOf) : work();
}
