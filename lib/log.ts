import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import pino from 'pino';
import { sqlStateOf } from './sql-state';
import type { UnauthenticatedReason } from './unauthenticated-reason';

/** Structured log lines on standard output, one JSON object each. Never a credential, e-mail or body. */
export const log = pino({
  base: null,
  timestamp: pino.stdTimeFunctions.isoTime,
  formatters: { level: (level) => ({ level }) },
  // By these, a line is found beside its trace.
  mixin: () => globalThis.telemetry?.spanIds() ?? {},
});

const WARN_EVERY_MS = 60_000;

/** Warns in these words at most once a minute: of what anybody can bring about, or what goes on as long as an outage. */
export function warningOnceAMinute(message: string): (about?: object) => void {
  let warned = Number.NEGATIVE_INFINITY;
  return (about = {}) => {
    if (performance.now() - warned < WARN_EVERY_MS) return;
    warned = performance.now();
    log.warn(about, message);
  };
}

const PLAIN_REQUEST_ID = /^[A-Za-z0-9_.:-]{1,64}$/;

/** The id of a request, in its answer and in its log line: the caller's own, if it is short and plain. */
export const requestIdOf = (given: unknown): string =>
  typeof given === 'string' && PLAIN_REQUEST_ID.test(given) ? given : randomUUID();

/** What a request's log line says about its course, besides route, status and duration. */
export interface RequestFacts {
  /** Where the guard found the internal user id: `bypass` means that the cache did not answer. */
  cache?: 'hit' | 'miss' | 'bypass';
  /** What the guard's registration of the caller came to, where the cache had no answer. */
  caller?: 'created' | 'existing';
  /** What the registration that the request asked for came to. */
  registered?: 'created' | 'existing';
  /** Why the guard found no verified session. */
  reason?: UnauthenticatedReason;
  eventType?: string;
  messageId?: string;
}

const requestFacts = new AsyncLocalStorage<RequestFacts>();

/** Runs `work` so that every `noteFacts` below it lands in `facts`. */
export function collectFacts<T>(facts: RequestFacts, work: () => Promise<T>): Promise<T> {
  return requestFacts.run(facts, work);
}

/** Adds to the log line of the request under way; does nothing outside of one. */
export function noteFacts(facts: RequestFacts): void {
  Object.assign(requestFacts.getStore() ?? {}, facts);
}

/** What the log says of an error. */
export interface ErrorDescription {
  name: string;
  code?: string;
  /** PostgreSQL's own code, where an error of Prisma stands for one of the database. */
  sqlState?: string;
  message?: string;
  frames?: string[];
  cause?: ErrorDescription;
}

const MAX_CAUSES = 3;

/** Where an error was made. Its stack begins with its name and message as they were then, whose lines may look like frames. */
function framesOf({ stack = '', message }: Error): string[] {
  const start = stack.indexOf(message);
  // A message that was changed afterwards leaves no way to tell where it ended.
  if (start === -1) return [];
  const lines = stack.slice(start + message.length).match(/^ +at .*/gm) ?? [];
  return lines.slice(0, 6).map((line) => line.trim());
}

const WORDS = /^[A-Za-z ,.'-]{1,100}$/;

/** Under `next dev` the log is the developer's own. */
const mayBeQuoted = (message: string) => process.env.NODE_ENV === 'development' || WORDS.test(message);

/**
 * Describes an error without quoting what it is about: drivers put statements, keys and values into their messages,
 * so a message is kept only if it is made of words alone, or under `next dev`.
 */
export function describeError(error: unknown, depth = 0): ErrorDescription {
  if (!(error instanceof Error)) return { name: typeof error };
  const code = 'code' in error && /^\w{1,40}$/.test(String(error.code)) ? String(error.code) : undefined;
  const sqlState = sqlStateOf(error);
  const frames = framesOf(error);
  return {
    name: error.name,
    ...(code ? { code } : {}),
    ...(sqlState ? { sqlState } : {}),
    ...(mayBeQuoted(error.message) ? { message: error.message } : {}),
    ...(frames.length ? { frames } : {}),
    ...(error.cause !== undefined && depth < MAX_CAUSES
      ? { cause: describeError(error.cause, depth + 1) }
      : {}),
  };
}
