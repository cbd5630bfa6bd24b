import * as z from 'zod/mini';
import { IdentityProviderUserId } from '../api/schemas';
import { type RetryOptions, retry } from '../concurrency/retry';
import { parseJson } from '../http/body';
import { listUsersWithExternalId, MAX_USERS } from '../idp/backend-api';
import { paginate } from './paginate';

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
  'malformed line': 'Write old,new or {"old":"…","new":"…"}',
  'invalid old id': 'Correct the id: 1 to 255 characters without NUL',
  'invalid new id': 'Correct the id: 1 to 255 characters without NUL',
  'old id equals new id': 'Remove the line',
  'old id occurs twice': 'Keep the line with the right new id',
  'new id occurs twice': 'Two users cannot have one id. Keep the line of the right user',
  'new id is the old id of another line':
    'Apply the other line in an earlier run with its own map, and then this line',
  'unknown old id': 'Run users:backfill with the IDP_SECRET_KEY of the old instance, or remove the line',
  'old id was moved to another id':
    'Remove the line, or roll back the run that moved the id before you apply this line',
  // The remedy sets FORGOTTEN_USERS_DAYS=0. With another value, the remedy would cause the collision `new id is forgotten`.
  'new id is linked to another internal id':
    'If the user of the new id has no data, run users:forget for the new id with FORGOTTEN_USERS_DAYS=0. Otherwise remove the line and merge the data yourself',
  'new id is a previous id of another user': 'Correct the new id',
  'old id is forgotten': 'Remove the line',
  'old id has a pending deletion':
    'To keep the user, run users:remember for the old id. To delete the user, run users:forget and remove the line',
  'new id is forgotten': 'Run users:remember for the new id, or remove the line',
} as const;

export type CollisionKind = keyof typeof REMEDIES;

/** A line that cannot be applied. `otherLine` is the number of the other line of the collision. */
export interface Collision {
  readonly line: number;
  readonly kind: CollisionKind;
  readonly oldId?: string | undefined;
  readonly newId?: string | undefined;
  readonly otherLine?: number | undefined;
}

/** A CSV field, with or without quotes. In a quoted field, `""` represents one quote. */
const FIELD = '("(?:[^"]|"")*"|[^",]*)';
const unquote = (field = '') => field.replaceAll(/^"|"$/g, '').replaceAll('""', '"');
const CSV = new RegExp(`^${FIELD},${FIELD}$`);
const Pair = z.object({ old: z.string(), new: z.string() });

function parseLine(text: string): Omit<MapLine, 'line'> | undefined {
  if (text.startsWith('{')) {
    const { data } = Pair.safeParse(parseJson(text));
    return data && { oldId: data.old, newId: data.new };
  }
  const fields = CSV.exec(text);
  return fields === null ? undefined : { oldId: unquote(fields[1]), newId: unquote(fields[2]) };
}

const isValid = (id: string) => IdentityProviderUserId.safeParse(id).success;

/**
 * Checks the ids of a line and compares the line with the other lines. Returns the first collision, or undefined if there is
 * none. Does not query the database.
 */
function collisionOf(
  line: MapLine,
  byOldId: ReadonlyMap<string, readonly number[]>,
  byNewId: ReadonlyMap<string, readonly number[]>,
): Collision | undefined {
  const { oldId, newId } = line;
  const otherOf = (lines: readonly number[] | undefined) => lines?.find((each) => each !== line.line);
  if (!isValid(oldId)) return { ...line, kind: 'invalid old id' };
  if (!isValid(newId)) return { ...line, kind: 'invalid new id' };
  if (oldId === newId) return { ...line, kind: 'old id equals new id' };
  const sameOld = otherOf(byOldId.get(oldId));
  if (sameOld !== undefined) return { ...line, kind: 'old id occurs twice', otherLine: sameOld };
  const sameNew = otherOf(byNewId.get(newId));
  if (sameNew !== undefined) return { ...line, kind: 'new id occurs twice', otherLine: sameNew };
  const next = otherOf(byOldId.get(newId));
  if (next !== undefined) return { ...line, kind: 'new id is the old id of another line', otherLine: next };
  return undefined;
}

/** The lines of a map that can be applied, and the collisions of the other lines. */
export interface CheckedMap {
  readonly lines: readonly MapLine[];
  readonly collisions: readonly Collision[];
}

/** Checks each line of a map, and compares the lines with each other. */
export function checkMap(all: readonly MapLine[]): CheckedMap {
  const [byOldId, byNewId] = [new Map<string, number[]>(), new Map<string, number[]>()];
  for (const { line, oldId, newId } of all) {
    for (const [lines, id] of [[byOldId, oldId] as const, [byNewId, newId] as const]) {
      const others = lines.get(id);
      if (others) others.push(line);
      else lines.set(id, [line]);
    }
  }
  const collisions = all.flatMap((line) => collisionOf(line, byOldId, byNewId) ?? []);
  const colliding = new Set(collisions.map(({ line }) => line));
  return { lines: all.filter(({ line }) => !colliding.has(line)), collisions };
}

/** Parses a file of CSV or JSON lines. Skips empty lines and a first line `old,new`. */
export function parseMap(text: string): CheckedMap {
  const lines: MapLine[] = [];
  const malformed: Collision[] = [];
  for (const [index, each] of text
    .replace(/^\ufeff/, '')
    .split(/\r?\n/)
    .entries()) {
    if (each === '' || (index === 0 && each === 'old,new')) continue;
    const pair = parseLine(each);
    if (pair) lines.push({ line: index + 1, ...pair });
    else malformed.push({ line: index + 1, kind: 'malformed line' });
  }
  const checked = checkMap(lines);
  return { lines: checked.lines, collisions: [...malformed, ...checked.collisions] };
}

/**
 * Reads all users of the new instance (the instance of IDP_SECRET_KEY). Creates a map with a line for each user that has an
 * `external_id`, which is the old id. Returns the checked map.
 */
export async function readExternalIds(retryOptions: RetryOptions): Promise<CheckedMap> {
  const externalIds = new Map<string, string | null>();
  const pages = paginate(
    async (page) => {
      const users = await retry(retryOptions, () => listUsersWithExternalId(page));
      for (const { id, externalId } of users) externalIds.set(id, externalId);
      return users;
    },
    { limit: MAX_USERS },
  );
  const lines: MapLine[] = [];
  for await (const { users } of pages) {
    for (const { id } of users) {
      const oldId = externalIds.get(id);
      if (oldId) lines.push({ line: lines.length + 1, oldId, newId: id });
    }
  }
  return checkMap(lines);
}
