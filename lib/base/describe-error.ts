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

/**
 * Returns true if the log may contain the message of the error. Ids, keys, URLs and statements contain characters that `WORDS`
 * does not. An InvalidEnvironmentError names variables, but not their values.
 */
const mayBeQuoted = ({ name, message }: Error) =>
  process.env.NODE_ENV === 'development' || name === 'InvalidEnvironmentError' || WORDS.test(message);

/**
 * Returns the log fields of an error. The result contains the message only if `mayBeQuoted` returns true, because drivers put
 * statements, keys and values into messages.
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
    ...(mayBeQuoted(error) ? { message: error.message } : {}),
    ...(frames.length ? { frames } : {}),
    ...(error.cause !== undefined && depth < MAX_CAUSES
      ? { cause: describeError(error.cause, depth + 1) }
      : {}),
  };
}
