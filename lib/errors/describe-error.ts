import { sqlStateOf } from './sql-state';

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
