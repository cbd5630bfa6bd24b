import * as z from 'zod/mini';
import { readDatabaseUrl } from './database-url';
import { InvalidEnvironmentError } from './errors';
import { processState } from './process-state';
import { type ParseResult, parsePublicKey } from './public-key';

const MIN_SIGNING_SECRET_BYTES = 24;
const MAX_SIGNING_SECRET_BYTES = 64;

/** Printable ASCII without spaces. The token of the cache must have this form, because it is sent in an HTTP header. */
const PRINTABLE = /^[\x21-\x7e]+$/;

const required = z.string({ error: 'is missing' }).check(z.trim());

/** Parses a publishable key: the host of the provider's Frontend API, which serves the browser SDK, and `$`, in base64. */
function readPublishableKey(key: string): ParseResult<{ key: string; frontendApi: string }> {
  const encoded = /^pk_(?:test|live)_([A-Za-z0-9+/=]+)$/.exec(key)?.[1] ?? '';
  const host = /^([a-z0-9.-]+\.[a-z0-9-]+)\$$/i.exec(Buffer.from(encoded, 'base64').toString())?.[1];
  return host === undefined
    ? { problem: 'must be a publishable key (pk_test_… or pk_live_…)' }
    : { value: { key, frontendApi: `https://${host}` } };
}

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

const httpUrl = required.check(
  z.refine(
    (value) => URL.canParse(value) && /^https?:$/.test(new URL(value).protocol),
    'must be an https:// or http:// URL',
  ),
);

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

/** URL of an emulator on the local stack (dev/). */
const loopbackUrl = required.check(
  z.refine((value) => {
    if (!URL.canParse(value)) return false;
    const { protocol, hostname, port } = new URL(value);
    return protocol === 'http:' && isLoopback(hostname) && port !== '';
  }, 'must be an http:// URL with a port on this machine: only the local stack sets this variable'),
);

const wholeNumber = (pattern: RegExp, fallback: number, range: string) =>
  z._default(
    z.pipe(z.string().check(z.regex(pattern, `must be a whole number of ${range}`)), z.transform(Number)),
    fallback,
  );

/** Schema of a value that `read` parses. */
const parsedBy = <T>(read: (value: string) => ParseResult<T>) =>
  z.pipe(
    required,
    z.transform((value, context) => {
      const result = read(value);
      if ('value' in result) return result.value;
      context.issues.push({ code: 'custom', input: value, message: result.problem });
      return z.NEVER;
    }),
  );

/** The variables of this service. Next.js, OpenTelemetry and the hosting platform read others. */
export const variables = z.object({
  IDP_SECRET_KEY: required.check(
    z.regex(/^sk_(?:test|live)_[\x21-\x7e]{10,}$/, {
      error: 'must be a secret key (sk_test_… or sk_live_…)',
      abort: true, // Skips the comparison with the publishable key.
    }),
  ),
  IDP_PUBLISHABLE_KEY: parsedBy(readPublishableKey),
  IDP_WEBHOOK_SIGNING_SECRET: parsedBy(readSigningSecrets),
  IDP_JWT_KEY: z.optional(parsedBy(parsePublicKey)),
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
  CLERK_API_URL: z.optional(loopbackUrl),
  CLERK_FAPI_URL: z.optional(loopbackUrl),
  IDP_CONSOLE_URL: z.optional(loopbackUrl),
});

/** Schema of all these variables. It also rejects the combination of a test key (`sk_test_`, `pk_test_`) and a live key. */
const environmentSchema = variables.check(
  z.refine(
    // Compares the characters `test_` or `live_` of the two keys.
    ({ IDP_SECRET_KEY, IDP_PUBLISHABLE_KEY }) =>
      IDP_SECRET_KEY.slice(3, 8) === IDP_PUBLISHABLE_KEY.key.slice(3, 8),
    {
      path: ['IDP_SECRET_KEY'],
      error:
        'must belong to the same instance as IDP_PUBLISHABLE_KEY: one is a test key and the other a live key',
    },
  ),
);

/** A valid environment with parsed values. */
export type Environment = z.infer<typeof environmentSchema>;

type Source = Readonly<Record<string, string | undefined>>;

/** Parses variables. Treats an empty one as unset, because hosting dashboards and `.env` files create empty variables. */
function parseWith<T>(schema: z.ZodMiniType<T>, source: Source): T {
  const set = Object.fromEntries(Object.entries(source).filter(([, value]) => value?.trim()));
  const parsed = schema.safeParse(set);
  if (parsed.success) return parsed.data;
  throw new InvalidEnvironmentError(
    parsed.error.issues.map((issue) => `${String(issue.path[0])} ${issue.message}`),
  );
}

/** Returns a fully valid environment or throws an InvalidEnvironmentError that lists all problems. */
export function parseEnvironment(source: Source): Environment {
  return parseWith(environmentSchema, source);
}

/** Parses only the variables in `schema`, a part of `variables`, so that a command runs with only those that it needs. */
export function parseEnvironmentSubset<T>(schema: z.ZodMiniType<T>): T {
  return parseWith(schema, process.env);
}

const state = processState('environment', (): { current?: Environment | undefined } => ({}));

/** Returns the environment of this process. It is parsed on first use and does not change afterwards. */
export function environment(): Environment {
  state.current ??= parseEnvironment(process.env);
  return state.current;
}

/** Returns the address and the token of the cache. Checks only these two variables, because a command may set no others. */
export function kvAddress(): { readonly url: string; readonly token: string } {
  const schema = z.pick(variables, { KV_REST_API_URL: true, KV_REST_API_TOKEN: true });
  const { KV_REST_API_URL: url, KV_REST_API_TOKEN: token } = parseEnvironmentSubset(schema);
  return { url, token };
}

/** Replaces the parsed environment, or lets the next call of environment() parse it again. Only tests call this function. */
export function setEnvironment(environment: Environment | undefined): void {
  state.current = environment;
}
