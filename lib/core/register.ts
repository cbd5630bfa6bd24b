import { retryLostRace, withTimeout } from './async';
import type { Kind, Observer, Store } from './ports';

/** The link of a user or an organization of the identity provider. */
export type Registration =
  | {
      readonly state: 'linked';
      readonly id: string;
      /** True if this call created the link. At most one call in all processes creates a given link. */
      readonly created: boolean;
    }
  | { readonly state: 'forgotten'; readonly id?: undefined; readonly created?: undefined };

/** Returns the outcome of a registration for logs and telemetry. */
export function outcomeOf(registration: Registration): 'created' | 'existing' | 'forgotten' {
  if (registration.state === 'forgotten') return 'forgotten';
  return registration.created ? 'created' : 'existing';
}

/**
 * Time limit of a registration, because the time limits of its statements add up. Leaves time for a database that wakes up, and
 * is below the 9 s of a shutdown and the 15 s after which a webhook sender gives up.
 */
const DEADLINE_MS = 8_000;

/**
 * Links an id of the identity provider to an internal id exactly once and returns the link. The unique key of the store prevents a
 * second link, even in a race between processes and at any isolation level.
 *
 * The result is `forgotten` for an id whose link an operator has deleted, and for an expired previous id (docs/contract.md, 3).
 * `issuedAt` is the time at which the user's own session token was issued, in seconds since 1970. A token that was issued after
 * the deletion links a user again. Runs one statement for an existing link and two for a new one. Rejects with the error of the
 * store, or after 8 s. A rejected call can be repeated.
 */
export type Register = (kind: Kind, providerId: string, issuedAt?: number) => Promise<Registration>;

/** Creates the registration for a store. */
export function createRegister(store: Store, observer: Pick<Observer, 'span'>): Register {
  async function findOrCreate(
    kind: Kind,
    providerId: string,
    issuedAt: number | undefined,
    attempts = 2,
  ): Promise<Registration> {
    const existing = await store.find(kind, providerId);
    if (existing.state === 'linked') return { ...existing, created: false };
    if (existing.state === 'forgotten') return { state: 'forgotten' };
    const inserted = await store.insert(kind, providerId, issuedAt);
    if (typeof inserted === 'string') return { state: 'linked', id: inserted, created: true };
    if (inserted) return { state: 'linked', id: inserted.existing, created: false };
    // Another call has created the link, or the id is forgotten.
    const winner = await store.find(kind, providerId);
    if (winner.state === 'linked') return { ...winner, created: false };
    if (winner.state === 'forgotten' || (await store.isForgotten(kind, providerId, issuedAt)))
      return { state: 'forgotten' };
    // An operator has changed the state of the id since, for example with `remember`.
    if (attempts > 1) return findOrCreate(kind, providerId, issuedAt, attempts - 1);
    throw new Error('A link was neither found nor created');
  }

  return (kind, providerId, issuedAt) =>
    observer.span(
      'register',
      () =>
        withTimeout(
          DEADLINE_MS,
          retryLostRace(store.isLostRace, () => findOrCreate(kind, providerId, issuedAt)),
        ),
      outcomeOf,
    );
}
