import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CsvError, parse } from 'csv-parse';
import type { RetryOptions } from '../base/retry';
import { isIdentityProviderUserId } from '../core/values';
import { providerUsers } from './paginate';

/** Kinds of collisions, each with its remedy. A line with a collision cannot be applied. */
export const REMEDIES = {
  'invalid id': 'Correct the ids: 1 to 255 characters without NUL',
  'white space around an id': 'Remove the white space, which can be invisible',
  'id occurs twice': 'Keep one line for each old id and each new id',
  'old and new id are the same': 'Remove the line',
  'unknown old id':
    'For a user, run a backfill with the secret key of the old instance. Otherwise remove the line',
  'old id was moved to another id':
    'Remove the line, or roll back the run that moved the id before you apply this line',
  // The remedy sets FORGOTTEN_USERS_DAYS=0. With another value, the new id of a user would be forgotten.
  'new id is linked to another internal id':
    'The new id has signed in or was registered before. If that internal id has no data, forget the new id with FORGOTTEN_USERS_DAYS=0. Otherwise remove the line and merge the data yourself',
  // After the other line has moved its row, the id is a previous id of that row, so no order of the lines helps.
  'new id is the old id of another line':
    'An id never leads to two internal ids. Create the user or organization at the provider again, and write its new id here. If two links are exchanged by mistake, exchange their data instead',
  'new id is a previous id of another internal id': 'Correct the new id',
  'old id is forgotten': 'Remove the line',
  'old id has a pending deletion':
    'To keep the row, remember the old id. To delete it, forget the old id and remove the line',
  'new id is forgotten or has a pending deletion': 'Remember the new id, or remove the line',
} as const;

export type Collision = keyof typeof REMEDIES;

/** A line of a map: a present id at the identity provider, the id that replaces it, and the number of the line, from 1. */
export interface MapLine {
  readonly line: number;
  readonly oldId: string;
  readonly newId: string;
  /** What `checkMap` has found. */
  readonly collision?: Collision;
}

/** White space, and characters that a terminal does not show, at the start or end of an id. U+2800 is an empty Braille pattern. */
const OUTER_SPACE = /^[\s\p{Cc}\p{Cf}\p{DI}\u2800]|[\s\p{Cc}\p{Cf}\p{DI}\u2800]$/u;

/** Returns the ids that occur more than once. A sorted list takes less memory than a set of all ids. */
export const repeatedIds = (ids: string[]): ReadonlySet<string> =>
  new Set(ids.sort().filter((id, index, sorted) => id === sorted[index - 1]));

/** Finds the lines with an invalid id and the lines whose old or new id occurs twice. Does not query the database. */
function checkMap(lines: readonly MapLine[]): MapLine[] {
  const repeatedOld = repeatedIds(lines.map(({ oldId }) => oldId));
  const repeatedNew = repeatedIds(lines.map(({ newId }) => newId));
  const collisionOf = ({ oldId, newId }: MapLine): Collision | undefined => {
    const ids = [oldId, newId];
    if (!ids.every(isIdentityProviderUserId)) return 'invalid id';
    if (ids.some((id) => OUTER_SPACE.test(id))) return 'white space around an id';
    return repeatedOld.has(oldId) || repeatedNew.has(newId) ? 'id occurs twice' : undefined;
  };
  return lines.map((line) => {
    const collision = collisionOf(line);
    return collision === undefined ? line : { ...line, collision };
  });
}

/**
 * Parses a CSV file with two columns. Skips empty lines and a first line with these names. Throws an error that names the line if
 * it is malformed or not UTF-8.
 */
export async function parseMap(file: Readable, names: readonly [string, string]): Promise<MapLine[]> {
  const all: MapLine[] = [];
  const parser = parse<null, Pick<MapLine, 'oldId' | 'newId'>>({
    bom: true,
    columns: ['oldId', 'newId'],
    record_delimiter: ['\r\n', '\n'],
    skip_empty_lines: true,
    // A record that the parser returns takes several times the memory.
    on_record({ oldId, newId }, { lines }) {
      // The parser replaces invalid bytes with this character.
      if (`${oldId}${newId}`.includes('\ufffd'))
        throw new Error(`Line ${lines} of the map is not UTF-8. Save the file as UTF-8`);
      if (all.length > 0 || oldId !== names[0] || newId !== names[1]) all.push({ line: lines, oldId, newId });
      return null;
    },
  });
  try {
    await pipeline(file, parser.resume());
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw new Error(`Line ${error['lines']} of the map is malformed. Write ${names}`, { cause: error });
  }
  return checkMap(all);
}

/** Returns a map with a line for each user of the main provider whose `external_id` is set: the old id. */
export async function readExternalIds(retryOptions: RetryOptions): Promise<MapLine[]> {
  const lines: MapLine[] = [];
  for await (const users of providerUsers(retryOptions)) {
    for (const { id, externalId } of users)
      if (externalId) lines.push({ line: lines.length + 1, oldId: externalId, newId: id });
  }
  return checkMap(lines);
}
