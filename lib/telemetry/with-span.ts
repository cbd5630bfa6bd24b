import type { RequestLogFields } from '../log';

/** The steps of a request that are told, and what each may come to, unless it fails. */
export interface Steps {
  readonly guard: 'passed' | 'refused';
  readonly 'cache read': 'hit' | 'miss' | 'fault';
  readonly 'cache write': 'stored' | 'fault';
  readonly register: 'created' | 'existing';
  readonly 'verify webhook': 'verified' | 'refused';
}

/** An answer, as its log line tells of it. */
export interface Answered {
  readonly method: string;
  /** The folder's name of the route, or the API root: never an address. */
  readonly route: string;
  readonly status: number;
  readonly seconds: number;
  readonly facts: RequestLogFields;
}

/** What the service tells of its work while telemetry is on (docs/telemetry.md). Nothing of it throws or waits. */
export interface Telemetry {
  withSpan<S extends keyof Steps, T>(
    name: S,
    work: () => Promise<T>,
    outcomeOf: (result: T) => Steps[S],
  ): Promise<T>;
  answered(answer: Answered): void;
  /** A verified event was acknowledged that the provider had sent at this time (milliseconds since 1970). */
  eventHandled(sentAt: number): void;
  breakerOpened(): void;
  breakerClosed(): void;
  /** Of the span under way, if it is recorded. */
  spanIds(): { readonly trace_id: string; readonly span_id: string } | undefined;
  /** Sends what has not been sent, and resolves when that is done, has failed, or has taken 1.5 s. */
  flush(): Promise<void>;
}

declare global {
  /**
   * Undefined while telemetry is off. Next.js bundles the start-up apart from the routes: a variable of this module would
   * not be the same in both.
   */
  var telemetry: Telemetry | undefined;
}

/** Runs a step of a request; while telemetry is on, as a span that ends with its outcome. */
export function withSpan<S extends keyof Steps, T>(
  name: S,
  work: () => Promise<T>,
  outcomeOf: (result: T) => Steps[S],
): Promise<T> {
  return globalThis.telemetry ? globalThis.telemetry.withSpan(name, work, outcomeOf) : work();
}
