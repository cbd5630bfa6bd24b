/** A mutant that no test can catch, because it does not change what a caller can observe. */
interface Equivalent {
  readonly file: string;
  /** The mutant, as `npm run mutation` prints it. */
  readonly mutant: string;
  readonly reason: string;
}

const ISSUES = "return { ok: false, status: 400, message: issues[0]?.message ?? 'Invalid input', fields };";

export const EQUIVALENT: readonly Equivalent[] = [
  {
    file: 'lib/concurrency/batch-loader.ts',
    mutant: 'if (open?.keys === keys) open = undefined; | open?.keys → open.keys',
    reason:
      'Batches are sent in the order in which they were opened, so one is open until the last one is sent.',
  },
  {
    file: 'lib/guard-action.ts',
    mutant: `${ISSUES} | issues[0]?.message → issues[0].message`,
    reason: 'An error of zod has at least one issue.',
  },
  {
    file: 'lib/guard-action.ts',
    mutant: `${ISSUES} | 'Invalid input' → ""`,
    reason: 'An error of zod has at least one issue.',
  },
];
