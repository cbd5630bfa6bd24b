import { fieldsOf } from '../core/values';
import { sqlStateOf } from './sql-state';

/** The log fields of an error. */
export interface ErrorDescription {
  name: string;
  code?: string;
  /** SQLSTATE of the database error behind a Prisma error. */
  sqlState?: string;
  message?: string;
  frames?: string[];
  cause?: ErrorDescription;
}

/** Maximum number of nested causes in the result. */
const MAX_CAUSES = 3;

/** Returns up to six stack frames. Skips the name and the message, because lines of a message may look like frames. */
function framesOf({ stack = '', message }: Error): string[] {
  const start = stack.indexOf(message);
  // If the message was changed after the stack was created, the end of the old message in the stack is unknown.
  if (start === -1) return [];
  const lines = [...stack.slice(start + message.length).matchAll(/^ +at .*/gm)];
  return lines.slice(0, 6).map(([line]) => line.trim());
}

const WORDS = /^[A-Za-z ,.'-]{1,100}$/;

/** Returns true if the log may contain the message. Ids, keys, URLs and statements do not match `WORDS`. */
const mayBeQuoted = ({ name, message }: Error) =>
  process.env.NODE_ENV === 'development' || name === 'InvalidEnvironmentError' || WORDS.test(message);

/** Returns the log fields of an error, with its message only if `mayBeQuoted`, because drivers put values into messages. */
export function describeError(error: unknown, depth = 0): ErrorDescription {
  if (!(error instanceof Error)) return { name: typeof error };
  const code = 'code' in error && /^\w{1,40}$/.test(String(error.code)) ? String(error.code) : undefined;
  const sqlState = sqlStateOf(error);
  const frames = framesOf(error);
  return {
    name: error.name,
    ...(code ? { code } : {}),
    ...(sqlState ? { sqlState } : {}),
    ...(mayBeQuoted(error) ? { message: error.message } : {}),
    ...(frames.length ? { frames } : {}),
    ...(error.cause !== undefined && depth < MAX_CAUSES
      ? { cause: describeError(error.cause, depth + 1) }
      : {}),
  };
}

/** Returns `timeout`, the code of an error or of its cause, its message if the log may contain it, or its name. */
export function errorCode(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return errorCode(error.errors[0]);
  const { name, code, message, cause } = describeError(error);
  if (name === 'TimeoutError') return 'timeout';
  return code ?? cause?.code ?? message ?? name;
}

/** An error after which a later attempt can succeed. Operators see the message, so it must not contain request data. */
export class TransientError extends Error {
  constructor(
    message: string,
    /** Pause that the server requested, for example in a `Retry-After` header. */
    readonly retryAfterSeconds?: number,
  ) {
    super(message);
    this.name = 'TransientError';
  }
}

/** SQLSTATEs and Prisma codes of permanent errors, such as rejected credentials, a missing table, or the error of a trigger. */
const PERMANENT = /^(?:23|28|3D|42|P0001|P1000|P1003|P1010|P2021|P2022)/;
/** Codes of Prisma, of PostgreSQL and of a broken connection. */
const OF_DATABASE = /^(?:(?=.*\d)[0-9A-Z]{5}|E(?:CONN|PIPE|HOST|NET|TIMEDOUT|NOTFOUND|AI_AGAIN).*)$/;
/** Messages of the database driver for timeouts and lost connections, which have no code. */
const DRIVER_MESSAGE =
  /^(?:Connection terminated|Client has encountered a connection error|Client was closed|Query read timeout|timeout exceeded)/;

/** PgBouncer's message for a parameter. Its SQLSTATE, 08P01, is also that of errors that do not last. */
const REJECTED_PARAMETER = /^unsupported startup parameter/;
/** Remedy for a certificate that Node.js rejects. */
export const TRUST_CA =
  'Renew it, or name the file of its CA in NODE_EXTRA_CA_CERTS or in sslrootcert of DATABASE_URL';

/**
 * Converts an error of the database to one whose message contains no value of a row: a permanent error to an Error, and any other
 * error to a TransientError, because a failover or a busy pool does not last. Returns any other error unchanged.
 */
export function withoutValues(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { name, code = '', sqlState } = describeError(error);
  const isOfDatabase = OF_DATABASE.test(code) || name.startsWith('PrismaClient');
  if (sqlState === undefined && !isOfDatabase && !DRIVER_MESSAGE.test(error.message)) return error;
  const reason = sqlState ?? (code || name);
  const { driverAdapterError } = fieldsOf(fieldsOf(error)['meta']);
  const { kind, reason: tlsError, originalMessage } = fieldsOf(fieldsOf(driverAdapterError)['cause']);
  if (kind === 'TlsConnectionError')
    return new Error(`Node.js rejects the certificate of the database: ${tlsError}. ${TRUST_CA}`);
  if (reason === '42501') return new Error('The database role lacks a privilege (42501)');
  if (REJECTED_PARAMETER.test(String(originalMessage ?? error.message)))
    return new Error('The connection pooler rejects a parameter of DATABASE_URL (08P01). Remove it');
  if (PERMANENT.test(reason)) return new Error(`The database rejected the statement (${reason})`);
  return new TransientError(`The database failed (${reason})`);
}

/** Lists every problem of the environment variables. The message contains their names but not their values. */
export class InvalidEnvironmentError extends Error {
  /** Each problem starts with the name of its variable. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`Invalid environment variables:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
    this.name = 'InvalidEnvironmentError';
    this.problems = problems;
  }
}

/** Error for an invalid argument or input file of a command. The message tells the operator how to correct it. */
export class UsageError extends Error {}

/** Error classes whose messages have no secret in this project. Drivers and parsers throw subclasses, whose messages may have. */
const SAFE_ERRORS: readonly unknown[] = [Error, UsageError, TransientError, InvalidEnvironmentError];

/** Returns the message of a SAFE_ERRORS error, and the name, the code and the quotable message of another one. */
export function safeMessage(thrown: unknown): string {
  const error = withoutValues(thrown);
  if (error instanceof Error && SAFE_ERRORS.includes(error.constructor)) return error.message;
  const { name, code = '', message = '' } = describeError(error);
  return [name, code, message].filter(Boolean).join(' ');
}

/** Returns a message for a developer, of any thrown value. It may contain a secret. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, name, cause } = error;
  if (message) return message;
  if (error instanceof AggregateError) return error.errors.map(messageOf).join(', ');
  return 'code' in error ? String(error.code) : cause === undefined ? name : messageOf(cause);
}
