import { z } from 'zod';
import { newId } from './ids';

/** Makes the next calls of an operation fail or wait. A failed call changes no data. */
const Failure = z.strictObject({
  /** Operation of the Frontend API or of the Backend API, such as `GET /v1/users/:id`. */
  operation: z.string(),
  /** Status of the responses. Without it, the calls only wait. A 429 has the header `Retry-After: 1`. */
  status: z.int().min(400).max(599).optional(),
  /** Time before the response. Default: 0. */
  delayMilliseconds: z.int().min(0).max(600_000).default(0),
  /** Number of calls. Default: 1. */
  calls: z.int().min(1).default(1),
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
  /** Removes all failures. */
  clear(): void;
}

/** Returns an empty queue. `operations` returns the operations that can fail. */
export function failureQueue(operations: () => readonly string[]) {
  const schema = Failure.refine(({ operation }) => operations().includes(operation), {
    error: 'the emulator has no such operation',
    path: ['operation'],
  });
  let pending: readonly PendingFailure[] = [];
  const failures: Failures = {
    add(input) {
      const failure = { id: newId('fail'), ...schema.parse(input) };
      pending = [...pending, failure];
      return failure;
    },
    list: () => [...pending],
    clear() {
      pending = [];
    },
  };
  return {
    ...failures,
    /** Validates a failure, including its operation. */
    schema,
    /** Returns the failure that applies to this call of an operation, if any, and decrements its `calls`. */
    take(operation: string): PendingFailure | undefined {
      const failure = pending.find((each) => each.operation === operation);
      if (failure === undefined) return undefined;
      const { id, calls } = failure;
      pending = pending.flatMap((each) =>
        each.id !== id ? each : calls === 1 ? [] : { ...each, calls: calls - 1 },
      );
      return failure;
    },
  };
}
