import * as z from 'zod/mini';
import { type ParseResult, parsePublicKey } from './crypto/public-key';
import { processState } from './process-state';

const MIN_SIGNING_SECRET_BYTES = 24;
const MAX_SIGNING_SECRET_BYTES = 64;

const words = (value: string) => value.split(/\s+/);

/** What can stand in a header. */
const PRINTABLE = /^[\x21-\x7e]+$/;

const required = z.string({ error: 'is missing' }).check(z.trim(), z.minLength(1, 'is empty'));

/** A publishable key and what it names: the instance's Frontend API, which also serves the browser SDK. */
function readPublishableKey(key: string): ParseResult<{ key: string; frontendApi: string }> {
  const encoded = /^pk_(?:test|live)_([A-Za-z0-9+/=]+)$/.exec(key)?.[1] ?? '';
  const host = /^([a-z0-9.-]+\.[a-z0-9-]+)\$$/i.exec(Buffer.from(encoded, 'base64').toString())?.[1];
  return host === undefined
    ? { problem: 'is not a publishable key (pk_test_… or pk_live_…)' }
    : { value: { key, frontendApi: `https://${host}` } };
}

function isSigningSecret(secret: string): boolean {
  const encoded = secret.replace(/^whsec_/, '');
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(encoded) || encoded.length % 4 !== 0) return false;
  const bytes = Buffer.from(encoded, 'base64').length;
  return bytes >= MIN_SIGNING_SECRET_BYTES && bytes <= MAX_SIGNING_SECRET_BYTES;
}

function isOrigin(value: string): boolean {
  return URL.canParse(value) && new URL(value).origin === value;
}

const url = (protocols: RegExp, problem: string) =>
  required.check(
    z.refine((value) => {
      if (!URL.canParse(value)) return false;
      const { protocol, hostname } = new URL(value);
      return protocols.test(protocol) && hostname !== '';
    }, problem),
  );

/** True if only a process on the same machine can be behind this host. */
export const isLoopback = (hostname: string): boolean =>
  /^(?:127\.0\.0\.1|localhost|\[::1\])$/.test(hostname);

/** An address that only a process on the same machine can serve: what a stand-in of the local stack has. */
const loopbackUrl = required.check(
  z.refine((value) => {
    if (!URL.canParse(value)) return false;
    const { protocol, hostname, port } = new URL(value);
    return protocol === 'http:' && isLoopback(hostname) && port !== '';
  }, 'must be an http:// address of this machine: it is for the local stack only'),
);

const listOf = (isMember: (word: string) => boolean, problem: string) =>
  z.pipe(required, z.transform(words)).check(z.refine((list) => list.every(isMember), problem));

/** What `read` makes of a value. */
const readBy = <T>(read: (value: string) => ParseResult<T>) =>
  z.pipe(
    required,
    z.transform((value, context) => {
      const result = read(value);
      if ('value' in result) return result.value;
      context.issues.push({ code: 'custom', input: value, message: result.problem });
      return z.NEVER;
    }),
  );

/** Every variable that the service reads. `.env.example` lists the same names. */
export const variables = z.object({
  IDP_SECRET_KEY: required.check(
    z.regex(/^sk_(?:test|live)_[\x21-\x7e]{10,}$/, 'is not a secret key (sk_test_… or sk_live_…)'),
  ),
  IDP_PUBLISHABLE_KEY: readBy(readPublishableKey),
  IDP_WEBHOOK_SIGNING_SECRET: listOf(
    isSigningSecret,
    `must hold signing secrets (whsec_…) of ${MIN_SIGNING_SECRET_BYTES} to ${MAX_SIGNING_SECRET_BYTES} bytes, separated by white space`,
  ),
  IDP_JWT_KEY: z.optional(readBy(parsePublicKey)),
  IDP_AUTHORIZED_PARTIES: z.optional(
    listOf(isOrigin, 'must hold origins (https://app.example.com), separated by white space'),
  ),
  DATABASE_URL: url(/^postgres(?:ql)?:$/, 'is not a postgresql:// URL'),
  KV_REST_API_URL: url(/^https?:$/, 'is not an http(s):// URL'),
  KV_REST_API_TOKEN: required.check(z.regex(PRINTABLE, 'must be printable ASCII without spaces')),
  USER_ID_CACHE_TTL_SECONDS: z._default(
    z.pipe(
      z.string().check(z.regex(/^[1-9]\d{0,5}$/, 'must be a whole number of seconds, 1 to 999999')),
      z.transform(Number),
    ),
    600,
  ),
  CLERK_API_URL: z.optional(loopbackUrl),
  CLERK_FAPI_URL: z.optional(loopbackUrl),
  IDP_CONSOLE_URL: z.optional(loopbackUrl),
});

/** All of them, as they fit together. */
export const environmentSchema = variables.check(
  z.refine(
    ({ IDP_SECRET_KEY, IDP_PUBLISHABLE_KEY }) =>
      IDP_SECRET_KEY.slice(3, 8) === IDP_PUBLISHABLE_KEY.key.slice(3, 8),
    {
      path: ['IDP_SECRET_KEY'],
      error: 'and IDP_PUBLISHABLE_KEY are of different instances (test and live)',
    },
  ),
);

/** A valid environment: every variable in the form in which the code uses it. */
export type Environment = z.infer<typeof environmentSchema>;

/** Lists every problem of an environment by variable name. It never quotes a value. */
export class InvalidEnvironmentError extends Error {
  /** The name of a variable, and what is wrong with it. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`The environment is not complete:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
    this.name = 'InvalidEnvironmentError';
    this.problems = problems;
  }
}

type Source = Readonly<Record<string, string | undefined>>;

/** An empty variable counts as unset, as hosting dashboards and `.env` files produce them. */
function parseBy<T>(schema: z.ZodMiniType<T>, source: Source): T {
  const set = Object.fromEntries(Object.entries(source).filter(([, value]) => value?.trim()));
  const parsed = schema.safeParse(set);
  if (parsed.success) return parsed.data;
  throw new InvalidEnvironmentError(
    parsed.error.issues.map((issue) => `${String(issue.path[0])} ${issue.message}`),
  );
}

/** Returns a fully valid environment or throws an InvalidEnvironmentError that names every problem at once. */
export function parseEnvironment(source: Source): Environment {
  return parseBy(environmentSchema, source);
}

/**
 * Some of this process's variables, by a part of `variables`; throws an InvalidEnvironmentError over these alone. A command
 * of an operator runs where the others may be missing.
 */
export function parseEnvironmentSubset<T>(part: z.ZodMiniType<T>): T {
  return parseBy(part, process.env);
}

const state = processState('environment', (): { current?: Environment | undefined } => ({}));

/** Returns the environment of this process. It is parsed on first use and does not change afterwards (contract 8.2). */
export function environment(): Environment {
  state.current ??= parseEnvironment(process.env);
  return state.current;
}

/** Replaces the parsed environment. With undefined, the next use parses it again. Only tests call this function. */
export function setEnvironment(environment: Environment | undefined): void {
  state.current = environment;
}
