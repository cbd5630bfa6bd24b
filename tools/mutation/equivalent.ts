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

const FAILED = "error === undefined ? [] : [{ id, reason: error.issues[0]?.message ?? '' }],";

const UNQUOTE = `const unquote = (field = '') => field.replaceAll(/^"|"$/g, '').replaceAll('""', '"');`;

const STATE =
  "const state = processState('database', (): { connection?: ReturnType<typeof connect> | undefined } =";
// These string literals are split between `$` and `{`. The linter rejects `${` in a string that is not a template literal.
const READ =
  'const read = (part: string) => headers.get(`svix-$' +
  '{part}`) ?? headers.get(`webhook-$' +
  "{part}`) ?? '';";

const DATA =
  'pathname: headers.has(DATA_ALIAS) ? `/_next/data$' +
  '{pathname}` : pathname, | `/_next/data$' +
  '{pathname}`';

const PARTY =
  "export const foreignParty = (): NextResponse => NextResponse.next({ headers: { [FOREIGN_PARTY]: '1' ";

export const EQUIVALENT: readonly Equivalent[] = [
  {
    file: 'lib/concurrency/batch-loader.ts',
    mutant: 'if (open?.keys === keys) open = undefined; | open?.keys → open.keys',
    reason:
      '`open` is this batch or a newer one, never undefined, because batches are sent in the order in which they were opened.',
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
  {
    file: 'lib/crypto/public-key.ts',
    mutant: '} catch { | { return undefined; } → {}',
    reason: 'A function without a `return` statement returns undefined.',
  },
  {
    file: 'lib/errors/describe-error.ts',
    mutant: "function framesOf({ stack = '', message }: Error): string[] { | '' → \"Stryker was here!\"",
    reason: 'Neither the empty text nor its replacement contains a stack frame.',
  },
  {
    file: 'lib/idp/auth-state.ts',
    mutant: ": reasonOfSdk(headers.get(SDK_REASON) ?? ''); | '' → \"Stryker was here!\"",
    reason: 'Neither the empty text nor its replacement is a reason of the SDK.',
  },
  {
    file: 'lib/idp/auth-state.ts',
    mutant: "const word = headers.get(SDK_REASON) ?? ''; | '' → \"Stryker was here!\"",
    reason: 'Neither the empty text nor its replacement has the format of a reason.',
  },
  {
    file: 'lib/idp/auth-state.ts',
    mutant: "const proof = Buffer.from(headers.get(PROOF) ?? '', 'base64'); | '' → \"Stryker was here!\"",
    reason: 'Neither the empty text nor its replacement has the length of a proof.',
  },
  {
    file: 'lib/idp/auth-state.ts',
    mutant: "const token = headers.get(sdkHeader('token')) ?? ''; | '' → \"Stryker was here!\"",
    reason: 'Neither the empty text nor its replacement is a token, so there is no valid proof for it.',
  },
  {
    file: 'lib/idp/authenticate.ts',
    mutant: 'if (cached && credential.token !== undefined) { | credential.token !== undefined → true',
    reason: 'The session cache stores no credential without a token.',
  },
  {
    file: 'lib/idp/authentication-middleware.ts',
    mutant: '? { credential: undefined } | { credential: undefined } → {}',
    reason: 'A missing property is undefined.',
  },
  {
    file: 'lib/idp/authentication-middleware.ts',
    mutant:
      'return rejectWith(rejection)(request, { params: Promise.resolve({}) }); | { params: Promise.resolve({}) } → {}',
    reason: 'The route that `rejectWith` returns does not read its `params`.',
  },
  {
    file: 'lib/idp/authentication-middleware.ts',
    mutant: `${DATA} → \`\``,
    reason: 'Neither the path nor its replacement is served.',
  },
  {
    file: 'lib/idp/authorized-party.ts',
    mutant: `${PARTY} | '1' → ""`,
    reason: '`isForeignParty` does not read the value of the header.',
  },
  {
    file: 'lib/idp/extract-credential.ts',
    mutant: "const [name = '', ...rest] = cookie.split('='); | '' → \"Stryker was here!\"",
    reason: '`split` returns at least one text.',
  },
  {
    file: 'lib/idp/extract-credential.ts',
    mutant: "const token = BEARER.exec(authorization)?.[1] ?? ''; | '' → \"Stryker was here!\"",
    reason: 'Neither the empty text nor its replacement is a JWT.',
  },
  {
    file: 'lib/idp/extract-credential.ts',
    mutant:
      "const payload = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString(); | '' → \"Stryker was here!\"",
    reason: 'Neither the empty text nor its replacement decodes to JSON.',
  },
  {
    file: 'lib/idp/sanitize-request.ts',
    mutant: 'if (header === undefined || rest.length !== 2) return false; | header === undefined → false',
    reason: '`split` returns at least one text.',
  },
  {
    file: 'lib/idp/sanitize-request.ts',
    mutant: '} catch { | { return false; } → {}',
    reason: 'The callers treat undefined like false.',
  },
  {
    file: 'lib/storage/kv.ts',
    mutant: '} catch { | { return undefined; } → {}',
    reason: 'A function without a `return` statement returns undefined.',
  },
  {
    file: 'lib/storage/kv.ts',
    mutant: "response.setEncoding('utf8'); | 'utf8' → \"\"",
    reason: 'Node.js uses UTF-8 for an empty name.',
  },
  {
    file: 'lib/storage/kv.ts',
    mutant:
      'for (const socket of Object.values(agent.freeSockets).flat()) socket?.destroy(); | socket?.destroy → socket.destroy',
    reason: 'Each value of `freeSockets` is a list of sockets.',
  },
  {
    file: 'lib/storage/kv.ts',
    mutant:
      'for (const [index, reply] of replies.entries()) calls[index]?.resolve(reply); | calls[index]?.resolve → calls[index].resolve',
    reason: 'The number of replies is the number of calls.',
  },
  {
    file: 'lib/http/action-result.ts',
    mutant: `${ISSUES} | issues[0]?.message → issues[0].message`,
    reason: 'An error of zod has at least one issue.',
  },
  {
    file: 'lib/http/action-result.ts',
    mutant: `${ISSUES} | 'Invalid input' → ""`,
    reason: 'An error of zod has at least one issue.',
  },
  {
    file: 'lib/users/backfill.ts',
    mutant:
      'const start = from instanceof Date ? { createdAt: from.getTime(), seen: [] } : from; | [] → ["Stryker was here"]',
    reason:
      'The string in `seen` has no `id`, so no user is skipped. It has no `createdAt`, so the next cursor does not contain it.',
  },
  {
    file: 'lib/users/backfill.ts',
    mutant: `${FAILED} | error.issues[0]?.message → error.issues[0].message`,
    reason: 'An error of zod has at least one issue.',
  },
  {
    file: 'lib/users/backfill.ts',
    mutant: `${FAILED} | '' → "Stryker was here!"`,
    reason: 'An error of zod has at least one issue.',
  },
  {
    file: 'lib/users/export.ts',
    mutant:
      'where: { id: { in: [...allIdsOf(user), ...(userId === null ? [] : [userId])] } }, | [] → ["Stryker was here"]',
    reason: 'No row of `webhook_subjects` has the replacement as its id.',
  },
  {
    file: 'lib/users/forget.ts',
    mutant: '() => false, | () => false → () => undefined',
    reason: 'The callers treat undefined like false.',
  },
  {
    file: 'lib/users/paginate.ts',
    mutant: 'lastId = rows.at(-1)?.id; | rows.at(-1)?.id → rows.at(-1).id',
    reason:
      'The function returns before this line if the page has fewer rows than `limit`, so the page is not empty.',
  },
  {
    file: 'lib/users/relink-map.ts',
    mutant: `${UNQUOTE} | '' → "Stryker was here!"`,
    reason: 'Both groups of the pattern have a value in each match.',
  },
  {
    file: 'lib/users/relink.ts',
    mutant:
      'return line ? [{ line, state: stateOf(line, row, forgottenIds) }] : []; | [] → ["Stryker was here"]',
    reason: 'The number of rows is the number of lines.',
  },
  {
    file: 'lib/users/relink.ts',
    mutant: "orderBy: { identityProviderUserId: 'asc' }, | { identityProviderUserId: 'asc' } → {}",
    reason: 'If `take` is set, Prisma sorts by the primary key.',
  },
  {
    file: 'lib/users/rows.ts',
    mutant: "orderBy: { id: 'asc' }, | { id: 'asc' } → {}",
    reason: 'If `take` is set, Prisma sorts by the primary key.',
  },
  {
    file: 'lib/users/rows.ts',
    mutant:
      '...(userId === undefined ? {} : { where: { id: { gt: userId } } }), | userId === undefined → false',
    reason: 'Prisma ignores a condition whose value is undefined.',
  },
  {
    file: 'lib/http/body.ts',
    mutant: '} catch { | { return undefined; } → {}',
    reason: 'A function without a `return` statement returns undefined.',
  },
  {
    file: 'lib/http/body.ts',
    mutant:
      'throw new HttpError(400, parsed.error.issues[0]?.message ?? notJson); | parsed.error.issues[0]?.message → parsed.error.issues[0].message',
    reason: 'An error of zod has at least one issue.',
  },
  {
    file: 'lib/http/server-action.ts',
    mutant:
      "const build = processState('server-actions', (): { ids?: ReadonlySet<string> } => ({})); | 'server-actions' → \"\"",
    reason: 'The name only has to differ from the other names that are passed to `processState`.',
  },
  {
    file: 'lib/env.ts',
    mutant:
      "DATABASE_URL: url(/^postgres(?:ql)?:$/, 'must be a postgresql:// URL'), | /^postgres(?:ql)?:$/ → /^postgres(?:ql)?:/",
    reason: 'The protocol of a URL contains one colon, which is its last character.',
  },
  {
    file: 'lib/env.ts',
    mutant:
      "KV_REST_API_URL: url(/^https?:$/, 'must be an https:// or http:// URL'), | /^https?:$/ → /^https?:/",
    reason: 'The protocol of a URL contains one colon, which is its last character.',
  },
  {
    file: 'lib/env.ts',
    mutant:
      "const encoded = /^pk_(?:test|live)_([A-Za-z0-9+/=]+)$/.exec(key)?.[1] ?? ''; | '' → \"Stryker was here!\"",
    reason: 'Neither the empty text nor its replacement decodes to a host.',
  },
  {
    file: 'lib/env.ts',
    mutant:
      "context.issues.push({ code: 'custom', input: value, message: result.problem }); | 'custom' → \"\"",
    reason: '`parseWith` reads only the path and the message of an issue.',
  },
  {
    file: 'lib/health.ts',
    mutant: "await withTimeout(DATABASE_TIMEOUT_MS, pingDatabaseOnce('database')); | 'database' → \"\"",
    reason: 'All calls of `pingDatabaseOnce` use the same key.',
  },
  {
    file: 'lib/health.ts',
    mutant: "return (await checkReadiness('readiness')).result; | 'readiness' → \"\"",
    reason: 'All calls of `checkReadiness` use the same key.',
  },
  {
    file: 'lib/server/request-filter.ts',
    mutant: '} catch { | { return false; } → {}',
    reason: '`rejectionFor` treats undefined like false.',
  },
  {
    file: 'lib/telemetry/sdk.ts',
    mutant: 'spanProcessors: processor ? [processor] : [], | [] → ["Stryker was here"]',
    reason: 'Without an endpoint for traces, no span is sampled, so @vercel/otel calls no span processor.',
  },
  {
    file: 'lib/telemetry/sdk.ts',
    mutant: "dontPropagateContextUrls: ['*'], | '*' → \"\"",
    reason: 'Every URL starts with the empty text.',
  },
  {
    file: 'lib/telemetry/with-span.ts',
    mutant:
      "const state = processState('telemetry', (): { current?: Telemetry } => ({})); | 'telemetry' → \"\"",
    reason: 'The name only has to differ from the other names that are passed to `processState`.',
  },
];
