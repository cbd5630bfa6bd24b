import * as z from 'zod/mini';
import { type ParseResult, readDatabaseUrl } from './database-url';
import { InvalidEnvironmentError } from './errors';
import { processState } from './process-state';

const MIN_SIGNING_SECRET_BYTES = 24;
const MAX_SIGNING_SECRET_BYTES = 64;

/** Printable ASCII without spaces. The token of the cache must have this form, because it is sent in an HTTP header. */
const PRINTABLE = /^[\x21-\x7e]+$/;

export const required = z.string({ error: 'is missing' }).check(z.trim());

function isSigningSecret(secret: string): boolean {
  const encoded = secret.replace(/^whsec_/, '');
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(encoded) || encoded.length % 4 !== 0) return false;
  const bytes = Buffer.from(encoded, 'base64').length;
  return bytes >= MIN_SIGNING_SECRET_BYTES && bytes <= MAX_SIGNING_SECRET_BYTES;
}

/** An origin of a browser extension or of a desktop or mobile shell. `URL` does not return the origin of such a scheme. */
const CUSTOM_ORIGIN = /^(?!https?:)[a-z][a-z0-9+.-]*:\/\/[^/?#@\s]+$/;

/** Returns what is wrong with an origin. Browsers send origins in exactly one spelling. */
function problemOfOrigin(value: string): string | undefined {
  if (value.includes(',')) return 'must be separated by spaces, not by commas';
  if (value.includes('*')) return 'must list each origin, without a wildcard';
  if (value.endsWith('/')) return 'must contain origins without a slash at the end';
  if (/[A-Z]/.test(value)) return 'must contain origins in lower case';
  if (/^(?:https:.*:443|http:.*:80)$/.test(value)) return 'must contain origins without the default port';
  const isOrigin = CUSTOM_ORIGIN.test(value) || (URL.canParse(value) && new URL(value).origin === value);
  return isOrigin ? undefined : 'must contain origins (https://app.example.com), separated by spaces';
}

function readOrigins(text: string): ParseResult<string[]> {
  const origins = text.split(/\s+/);
  const [problem] = origins.flatMap((origin) => problemOfOrigin(origin) ?? []);
  return problem === undefined ? { value: origins } : { problem };
}

function readSigningSecrets(text: string): ParseResult<string[]> {
  const secrets = text.split(/\s+/);
  if (secrets.every(isSigningSecret)) return { value: secrets };
  const bytes = `${MIN_SIGNING_SECRET_BYTES} to ${MAX_SIGNING_SECRET_BYTES} bytes`;
  return { problem: `must contain signing secrets (whsec_…) of ${bytes}, separated by spaces` };
}

const httpUrl = required.check(z.url({ protocol: /^https?$/, error: 'must be an https:// or http:// URL' }));

/** Parses the origin of this service. Returns it in the spelling of browsers. */
function readPublicOrigin(text: string): ParseResult<string> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url && /^https?:\/\/[\w.:[\]-]+$/.test(url.origin) && url.href === `${url.origin}/`
    ? { value: url.origin }
    : { problem: 'must be an origin, such as https://app.example.com' };
}

/** Returns true for the host names of this machine. */
export const isLoopback = (hostname: string): boolean =>
  /^(?:127\.0\.0\.1|localhost|\[::1\])$/.test(hostname);

const wholeNumber = (pattern: RegExp, fallback: number, range: string) =>
  z._default(
    z.pipe(z.string().check(z.regex(pattern, `must be a whole number of ${range}`)), z.transform(Number)),
    fallback,
  );

/** Schema of a value that `read` parses. */
export const parsedBy = <T>(read: (value: string) => ParseResult<T>) =>
  z.pipe(
    required,
    z.transform((value, context) => {
      const result = read(value);
      if ('value' in result) return result.value;
      context.issues.push({ code: 'custom', input: value, message: result.problem });
      return z.NEVER;
    }),
  );

/** A service without Clerk requires this key. */
export const verdictKey = required.check(
  z.regex(/^[\x21-\x7e]{32,}$/, 'must have at least 32 printable ASCII characters'),
);

/** The variables of this service. Next.js, OpenTelemetry, the hosting platform and lib/clerk read others. */
export const variables = z.object({
  VERDICT_SIGNING_KEY: z.optional(verdictKey),
  IDP_WEBHOOK_SIGNING_SECRET: parsedBy(readSigningSecrets),
  IDP_AUTHORIZED_PARTIES: z.optional(parsedBy(readOrigins)),
  PUBLIC_ORIGIN: z.optional(parsedBy(readPublicOrigin)),
  REGISTER_OWN_ID_ONLY: z.optional(z.literal('1', 'must be 1 or unset')),
  DATABASE_URL: parsedBy(readDatabaseUrl),
  KV_REST_API_URL: httpUrl,
  KV_REST_API_TOKEN: required.check(
    z.regex(PRINTABLE, 'must contain only printable ASCII characters without spaces'),
  ),
  USER_ID_CACHE_TTL_SECONDS: wholeNumber(/^[1-9]\d{0,5}$/, 600, 'seconds from 1 to 999999'),
  FORGOTTEN_USERS_DAYS: wholeNumber(/^\d{1,3}$/, 30, 'days from 0 to 999'),
  // server.ts reads the variable, and has the default.
  KEEP_ALIVE_SECONDS: z.optional(
    required.check(z.regex(/^[1-9]\d{0,3}$/, 'must be a whole number of seconds from 1 to 9999')),
  ),
});

type Source = Readonly<Record<string, string | undefined>>;

/**
 * Parses the variables of a schema, such as a part of `variables`, so that a command runs with only those that it needs. Treats an
 * empty one as unset, because hosting dashboards and `.env` files create empty variables. Throws an InvalidEnvironmentError that
 * lists all problems.
 */
export function parseEnvironmentSubset<T>(schema: z.ZodMiniType<T>, source: Source = process.env): T {
  const set = Object.fromEntries(Object.entries(source).filter(([, value]) => value?.trim()));
  const parsed = schema.safeParse(set);
  if (parsed.success) return parsed.data;
  throw new InvalidEnvironmentError(
    parsed.error.issues.map((issue) => `${String(issue.path[0])} ${issue.message}`),
  );
}

const state = processState('environment', (): { source: Source } => ({ source: process.env }));

/** Returns a function that parses variables on first use. They do not change afterwards. */
export function environmentOf<T>(schema: z.ZodMiniType<T>): () => T {
  let parsed: { readonly source: Source; readonly value: T } | undefined;
  return () => {
    const { source } = state;
    if (parsed?.source !== source) parsed = { source, value: parseEnvironmentSubset(schema, source) };
    return parsed.value;
  };
}

/** Returns the variables of the service. The secret key of Clerk signs verdicts if there is no VERDICT_SIGNING_KEY. */
export const environment = environmentOf(z.extend(variables, { IDP_SECRET_KEY: z.optional(required) }));

/** Replaces the variables of this process, or lets each be parsed again. Only tests call this function. */
export function setEnvironment(source: Source = { ...process.env }): void {
  state.source = source;
}
