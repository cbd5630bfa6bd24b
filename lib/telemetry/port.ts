/** Fields of a request's log line besides id, route, status and duration. */
export interface RequestLogFields {
  /** Result of the lookup of the caller's internal id in the cache. `bypass` means that the cache call failed. */
  cache?: 'hit' | 'miss' | 'bypass';
  /** Result of the registration that the guard ran for the caller. Absent if the cache contained the caller's id. */
  caller?: 'created' | 'existing';
  /** Result of a registration by `POST /auth/v1/register` or by a webhook. `forgotten` means that it had no effect. */
  registered?: 'created' | 'existing' | 'forgotten';
  /** Why the request has no authenticated user. */
  reason?: string;
  /** True if another person or an agent acts for the user. */
  impersonated?: true;
  /** Result of the event handler. `repeated` means that an earlier delivery of the same message ran the handler. */
  handler?: 'completed' | 'repeated';
  eventType?: string;
  messageId?: string;
}

/** The names of the service's spans and the outcomes of each. If the work of a span throws, the outcome is `failed`. */
export interface SpanOutcomes {
  readonly guard: 'passed' | 'rejected';
  readonly 'cache read': 'hit' | 'miss' | 'error';
  readonly 'cache write': 'stored' | 'error';
  readonly register: 'created' | 'existing' | 'forgotten';
  readonly 'verify webhook': 'verified' | 'rejected';
}

/** A request that a route has handled. */
export interface HandledRequest {
  readonly requestId: string;
  readonly method: string;
  /** The path with the names of its parameters, such as `/notes/v1/[noteId]`. It must not contain data of the client. */
  readonly route: string;
  readonly status: number;
  readonly ms: number;
  readonly fields: RequestLogFields;
  readonly error?: unknown;
  /** True for a request that is logged at the level `debug` unless its handler throws. */
  readonly quiet: boolean;
}

/** Records spans and metrics (docs/telemetry.md). Recording does not throw and does not delay a request. */
export interface Telemetry {
  withSpan<S extends keyof SpanOutcomes, T>(
    name: S,
    work: () => Promise<T>,
    outcomeOf: (result: T) => SpanOutcomes[S],
  ): Promise<T>;
  /** Runs the handling of a request in a span, as a part of the client's trace. The span ends with the work. */
  withRequest<T>(headers: Pick<Headers, 'get'>, work: () => Promise<T>): Promise<T>;
  /** Records a request, also as the name and the attributes of its span. */
  recordRequest(request: HandledRequest): void;
  /** Records the registration that a page or a server action caused, if there was one. */
  recordPageUser(fields: RequestLogFields): void;
  breakerOpened(): void;
  breakerClosed(): void;
  /** Returns the ids of the current span if the span is sampled. */
  spanIds(): { readonly trace_id: string; readonly span_id: string } | undefined;
  /** Exports the pending spans and metrics. Resolves when the export has succeeded or failed, or after 1.5 s. */
  flush(): Promise<void>;
}
