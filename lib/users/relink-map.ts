import { CsvError, parse } from 'csv-parse/sync';
import * as z from 'zod/mini';
import { IdentityProviderUserId } from '../api/schemas';
import type { RetryOptions } from '../concurrency/retry';
import { providerUsers } from './paginate';

/**
 * A line of a map (a list of ids to replace): a user's present id at the identity provider, and the id that replaces it.
 * `line` is the number of the line, counted from 1.
 */
export interface MapLine {
  readonly line: number;
  readonly oldId: string;
  readonly newId: string;
}

/** Kinds of collisions, each with its remedy. A line with a collision cannot be applied. */
export const REMEDIES = {
  'invalid id': 'Correct the ids: 1 to 255 characters without NUL',
  'id occurs twice': 'Keep one line for each old id and each new id',
  'unknown old id': 'Run a backfill with the IDP_SECRET_KEY of the old instance, or remove the line',
  'old id was moved to another id':
    'Remove the line, or roll back the run that moved the id before you apply this line',
  // The remedy sets FORGOTTEN_USERS_DAYS=0. With another value, the remedy would cause the collision `new id is forgotten`.
  'new id is linked to another internal id':
    'If the user of the new id has no data, forget the new id with FORGOTTEN_USERS_DAYS=0. If another line moves that user, apply that line in an earlier run. Otherwise remove the line and merge the data yourself',
  'new id is a previous id of another user': 'Correct the new id',
  'old id is forgotten': 'Remove the line',
  'old id has a pending deletion':
    'To keep the user, remember the old id. To delete the user, forget the old id and remove the line',
  'new id is forgotten': 'Remember the new id, or remove the line',
} as const;

/** A line that cannot be applied. */
export interface Collision extends MapLine {
  readonly kind: keyof typeof REMEDIES;
}

/** The lines of a map that can be applied, and the collisions of the other lines. */
export interface CheckedMap {
  readonly lines: readonly MapLine[];
  readonly collisions: readonly Collision[];
}

/** Finds the lines with an invalid id and the lines whose old or new id occurs twice. Does not query the database. */
export function checkMap(all: readonly MapLine[]): CheckedMap {
  const counts = new Map<string, number>();
  const keysOf = ({ oldId, newId }: MapLine) => [`old ${oldId}`, `new ${newId}`];
  for (const key of all.flatMap(keysOf)) counts.set(key, (counts.get(key) ?? 0) + 1);
  const isValid = (id: string) => IdentityProviderUserId.safeParse(id).success;
  const collisions = all.flatMap((line): Collision[] => {
    if (!isValid(line.oldId) || !isValid(line.newId)) return [{ ...line, kind: 'invalid id' }];
    if (keysOf(line).some((key) => counts.get(key) !== 1)) return [{ ...line, kind: 'id occurs twice' }];
    return [];
  });
  const colliding = new Set(collisions.map(({ line }) => line));
  return { lines: all.filter(({ line }) => !colliding.has(line)), collisions };
}

const Records = z.array(
  z.object({
    info: z.object({ lines: z.number() }),
    record: z.object({ oldId: z.string(), newId: z.string() }),
  }),
);

/** Parses a CSV file. Skips empty lines and a first line `old,new`. Throws an error that names the line if it is malformed. */
export function parseMap(text: string): CheckedMap {
  const options = { bom: true, columns: ['oldId', 'newId'], info: true, skip_empty_lines: true };
  try {
    const records = Records.parse(parse(text, { ...options, record_delimiter: ['\r\n', '\n'] }));
    const lines = records.map(({ info, record }) => ({ line: info.lines, ...record }));
    const [first] = lines;
    return checkMap(first?.oldId === 'old' && first.newId === 'new' ? lines.slice(1) : lines);
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw new Error(`Line ${error['lines']} of the map is malformed. Write old,new`, { cause: error });
  }
}

/** Returns a map with a line for each user of the instance of IDP_SECRET_KEY whose `external_id` is set: the old id. */
export async function readExternalIds(retryOptions: RetryOptions): Promise<CheckedMap> {
  const lines: MapLine[] = [];
  for await (const users of providerUsers(retryOptions)) {
    for (const { id, externalId } of users)
      if (externalId) lines.push({ line: lines.length + 1, oldId: externalId, newId: id });
  }
  return checkMap(lines);
}
