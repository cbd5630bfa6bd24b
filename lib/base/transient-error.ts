import { describeError } from './describe-error';

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
  const { driverAdapterError } = Object(Object(error).meta);
  const { kind, reason: tlsError, originalMessage } = Object(Object(driverAdapterError).cause);
  if (kind === 'TlsConnectionError')
    return new Error(`Node.js rejects the certificate of the database: ${tlsError}. ${TRUST_CA}`);
  if (reason === '42501') return new Error('The database role lacks a privilege (42501)');
  if (REJECTED_PARAMETER.test(originalMessage ?? error.message))
    return new Error('The connection pooler rejects a parameter of DATABASE_URL (08P01). Remove it');
  if (PERMANENT.test(reason)) return new Error(`The database rejected the statement (${reason})`);
  return new TransientError(`The database failed (${reason})`);
}
