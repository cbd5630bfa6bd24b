/** A mutant that no test can catch, because it does not change what a caller can observe. */
interface Equivalent {
  readonly file: string;
  /** The mutant, as `npm run mutation` prints it. */
  readonly mutant: string;
  readonly reason: string;
}

export const EQUIVALENT: readonly Equivalent[] = [];
