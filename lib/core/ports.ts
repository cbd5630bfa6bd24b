import type { Verdict } from './verdict';

/** What gets an internal id. A tenant is an organization of the identity provider. */
export type Kind = 'user' | 'tenant';

/** What the store says about an id of the provider. `forgotten`: the id had a link, and gets no other. */
export type Stored =
  | { readonly state: 'linked'; readonly id: string }
  | { readonly state: 'forgotten' | 'none'; readonly id?: undefined };

/** The internal id of a link that another call has inserted. */
export interface Existing {
  readonly existing: string;
}

/** The links. All processes share them, and a unique key allows at most one for each kind and id of the provider. */
export interface Store {
  find(kind: Kind, providerId: string): Promise<Stored>;
  /**
   * Inserts a link. Returns its internal id only to the one call that inserted it. Another call gets undefined, or the existing
   * link. `issuedAt` is the issue time of the user's own session token, in seconds since 1970.
   */
  insert(kind: Kind, providerId: string, issuedAt?: number): Promise<string | Existing | undefined>;
  /** Returns true if `insert` inserts no link although there is none. */
  isForgotten(kind: Kind, providerId: string, issuedAt?: number): Promise<boolean>;
  /** Returns true for an error of a call that lost a race, so that the next call sees what the other one committed. */
  isLostRace(error: unknown): boolean;
}

/**
 * Result of a read. With `isShared`, the lookup may join a registration that is in flight. It is false if the entry blocks the id,
 * because a registration that began before the block would bring back a deleted link.
 */
export type CacheRead =
  | { readonly outcome: 'hit'; readonly id: string }
  /** `put` stores the id, unless the entry has changed so that it must not. Never rejects. */
  | { readonly outcome: 'miss'; readonly isShared: boolean; put(id: string): Promise<void> }
  /** The cache did not answer, so the request should not wait for it again. */
  | { readonly outcome: 'error'; readonly isShared: boolean };

/** Internal ids by the id at the provider. It may lose an entry at any time, and never returns the id of another. */
export interface Cache {
  /** Never rejects. */
  read(kind: Kind, providerId: string): Promise<CacheRead>;
}

/** Verifies the credential of a request (docs/contract.md, 5.1). Each provider of sessions has an implementation. */
export interface Sessions<R = Request> {
  /**
   * Returns undefined, without a call to the provider, for a request without a credential of its own. Returns a verdict without
   * a user for a forged or expired credential. Rejects if it cannot check a credential, which is then neither valid nor invalid.
   */
  authenticate(request: R): Verdict | undefined | Promise<Verdict | undefined>;
}

/** Fields of a request's log line besides id, route, status and duration. */
export interface RequestFields {
  /** Result of the lookup of the caller's internal id in the cache. `bypass` means that the cache call failed. */
  cache?: 'hit' | 'miss' | 'bypass';
  /** Result of the registration that the guard ran for the caller. Absent if the cache contained the caller's id. */
  caller?: 'created' | 'existing';
  /** Result of a registration by `POST /auth/v1/register` or by a webhook. `forgotten` means that it had no effect. */
  registered?: 'created' | 'existing' | 'forgotten';
  /** Why the request has no authenticated user. */
  reason?: string;
  /** The provider that decided about the credential, if it is not the first one. */
  provider?: string;
  /** True if another person or an agent acts for the user. */
  impersonated?: true;
  /** Result of the event handler. `repeated` means that an earlier delivery of the same message ran the handler. */
  handler?: 'completed' | 'repeated';
  eventType?: string;
  messageId?: string;
}

/** The names of the spans and the outcomes of each. If the work of a span throws, the outcome is `failed`. */
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
  readonly fields: RequestFields;
  readonly error?: unknown;
  /** True for a request that is logged at the level `debug` unless its handler throws. */
  readonly quiet: boolean;
}

/** Log and telemetry. No call throws or delays a request. A link needs none of them. */
export interface Observer {
  /** Runs the work of a request with these headers, and `handled`. Each call of `note` during `work` adds to `fields`. */
  run<T>(fields: RequestFields, headers: Headers, work: () => Promise<T>): Promise<T>;
  note(fields: RequestFields): void;
  /** Runs a part of a request, and records its outcome. */
  span<S extends keyof SpanOutcomes, T>(
    name: S,
    work: () => Promise<T>,
    outcomeOf: (result: T) => SpanOutcomes[S],
  ): Promise<T>;
  handled(request: HandledRequest): void;
}
