import { z } from 'zod';
import { newId } from './ids';

/**
 * Delays the next calls of an operation, or makes them fail. At least one of `status`, `delayMilliseconds` and `disconnect` is
 * set.
 */
const Failure = z
  .strictObject({
    /** Operation of the Frontend API or of the Backend API, such as `GET /v1/users/:id`. */
    operation: z.string(),
    /** Number of calls. Default: 1. */
    calls: z.int().min(1).default(1),
    /** Status of the response. The operation does not run. A 429 has the header `Retry-After: 1`. */
    status: z.int().min(400).max(599).optional(),
    /** Time before the operation runs or fails. */
    delayMilliseconds: z.int().min(1).max(600_000).optional(),
    /** Closes the connection without a response. The operation does not run. */
    disconnect: z.literal(true).optional(),
  })
  .refine(({ status, disconnect }) => status === undefined || disconnect === undefined, {
    error: 'a failure cannot have both a status and disconnect',
    path: ['status'],
  })
  .refine(({ status, delayMilliseconds, disconnect }) => status ?? delayMilliseconds ?? disconnect, {
    error: 'a failure needs a status, a delay or disconnect',
    path: ['status'],
  });

export type Failure = Readonly<z.input<typeof Failure>>;

/** A failure that affects the next calls of its operation. `calls` is the number of these calls. */
export type PendingFailure = Readonly<z.output<typeof Failure>> & { readonly id: string };

/** The pending failures of both APIs. */
export interface Failures {
  /** Adds a failure. If an operation has several failures, the oldest one applies first. Throws if `failure` is invalid. */
  add(failure: Failure): PendingFailure;
  /** Returns the pending failures, oldest first. */
  list(): PendingFailure[];
  /** Removes a failure, or all failures if there is no id. */
  remove(id?: string): void;
}

/** The failures, with additional functions for the Frontend API, the Backend API and the console. */
export interface FailureQueue extends Failures {
  /** Validates a failure, including its operation. */
  readonly schema: typeof Failure;
  /** Returns the operations that can fail. */
  operations(): readonly string[];
  /** Returns the failure that applies to this call of an operation, if any, and decrements its `calls`. */
  take(operation: string): PendingFailure | undefined;
}

/** Returns an empty queue, which calls `changed` after each change. */
export function failureQueue(operations: () => readonly string[], changed: () => void): FailureQueue {
  const schema = Failure.refine(({ operation }) => operations().includes(operation), {
    error: 'the emulator has no such operation',
    path: ['operation'],
  });
  const pending = new Map<string, PendingFailure>();
  return {
    schema,
    operations,
    add(input) {
      const failure = { id: newId('fail'), ...schema.parse(input) };
      pending.set(failure.id, failure);
      changed();
      return failure;
    },
    list: () => [...pending.values()],
    remove(id) {
      if (id === undefined) pending.clear();
      else pending.delete(id);
      changed();
    },
    take(operation) {
      const failure = [...pending.values()].find((each) => each.operation === operation);
      if (failure === undefined) return undefined;
      if (failure.calls === 1) pending.delete(failure.id);
      else pending.set(failure.id, { ...failure, calls: failure.calls - 1 });
      changed();
      return failure;
    },
  };
}
