/**
 * A mutant (the code of a file with one change) that no test can catch, because the change does not affect what a caller can
 * observe.
 */
interface Equivalent {
  readonly file: string;
  /** The mutant, as `npm run mutation` prints it. */
  readonly mutant: string;
  readonly reason: string;
}

// Source lines of the mutants below.
const ISSUES = "return { ok: false, status: 400, message: issues[0]?.message ?? 'Invalid input', fields };";

const STATE =
  "const state = processState('database', (): { connection?: ReturnType<typeof connect> | undefined } =";
// These string literals are split between `$` and `{`. The linter rejects `${` in a string that is not a template literal.
const READ =
  'const read = (part: string) => headers.get(`svix-$' +
  '{part}`) ?? headers.get(`webhook-$' +
  "{part}`) ?? '';";

export const EQUIVALENT: readonly Equivalent[] = [
  {
    file: 'lib/concurrency/batch-loader.ts',
    mutant: 'if (open?.keys === keys) open = undefined; | open?.keys → open.keys',
    reason:
      'Only the newest batch clears `open`. Batches are sent in order, so `open` is set until the newest batch is sent.',
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
  {
    file: 'lib/storage/database.ts',
    mutant: "const query = { text: 'SELECT 1', query_timeout: milliseconds }; | 'SELECT 1' → \"\"",
    reason: 'PostgreSQL responds to an empty query as well.',
  },
  {
    file: 'lib/storage/database.ts',
    mutant: `${STATE} | 'database' → ""`,
    reason: 'The name only has to differ from the other names that are passed to `processState`.',
  },
  {
    file: 'lib/crypto/webhook-signature.ts',
    mutant: "const [version, signature = ''] = entry.split(','); | '' → \"Stryker was here!\"",
    reason: 'Neither the empty text nor its replacement is a signature.',
  },
  {
    file: 'lib/crypto/webhook-signature.ts',
    mutant: `${READ} | '' → "Stryker was here!"`,
    reason: 'Neither the empty text nor its replacement is a valid id, timestamp or signature.',
  },
  {
    file: 'lib/crypto/webhook-signature.ts',
    mutant: "return createSecretKey(secret.replace(/^whsec_/, ''), 'base64'); | /^whsec_/ → /whsec_/",
    reason: 'The base64 text of a valid secret contains no underscore, so `whsec_` occurs only at the start.',
  },
];
