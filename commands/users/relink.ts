import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import * as z from 'zod/mini';
import type { RetryOptions } from '#lib/concurrency/retry';
import { parseEnvironmentSubset, variables } from '#lib/env';
import { type RelinkOptions, readJournal, relink, rollbackOf, runOf } from '#lib/users/relink';
import { type CheckedMap, type Collision, parseMap, REMEDIES, readExternalIds } from '#lib/users/relink-map';
import { type ExitCode, runCommand, safeMessage, secondsOf, shown, UsageError } from '../command';
import { showProgress } from '../progress';

const USAGE = `npm run users:relink -- --map <file> | --external-id | --rollback <run>
                        [--dry-run] [--window-days <days>] [--retry-seconds <seconds>]

  Links users to the new ids that they have at the identity provider, for example after a move to another instance. Each
  user keeps the internal id. Changes nothing at the provider. First checks all lines of the map. If a line cannot be applied
  (a collision), prints every collision and changes nothing. After an interruption, run the same command again.
  --map             file with a line old,new or {"old": "…", "new": "…"} for each user
  --external-id     reads the map from the instance of IDP_SECRET_KEY, where the external_id of each user is the old id
  --rollback        undoes the run with this id, which the run printed. The database has a journal of each run
  --dry-run         only checks the lines
  --window-days     number of days for which the service accepts the previous ids (30)
  --retry-seconds   retries failing requests and statements for this long (120)

  Needs KV_REST_API_URL, KV_REST_API_TOKEN, and a DATABASE_URL whose role may write the tables users and previous_ids.
  --external-id also needs IDP_SECRET_KEY.
  Exit code: 0 all users have the new ids, or --dry-run found no collision. 1 there are collisions or the run stopped early.
  2 the run did not start.`;

const VARIABLES = z.pick(variables, { DATABASE_URL: true, KV_REST_API_URL: true, KV_REST_API_TOKEN: true });
const PROVIDER_VARIABLES = z.pick(variables, { IDP_SECRET_KEY: true, CLERK_API_URL: true });

function readMapFile(path: string): CheckedMap {
  try {
    return parseMap(readFileSync(path, 'utf8'));
  } catch {
    throw new UsageError(`Cannot read ${path}.`);
  }
}

/**
 * Reads the map of old and new ids from a file, the provider or the journal of a run. The options must select exactly one of
 * these sources. Returns the map, and the id of the run that applies this map.
 */
async function readSource(
  { map, 'external-id': external, rollback }: { map?: string; 'external-id': boolean; rollback?: string },
  retryOptions: RetryOptions,
): Promise<{ readonly source: CheckedMap; readonly run: string }> {
  const sources = [map !== undefined, external, rollback !== undefined].filter(Boolean).length;
  if (sources !== 1) throw new UsageError('Pass one of --map, --external-id and --rollback.');
  parseEnvironmentSubset(external ? z.extend(VARIABLES, PROVIDER_VARIABLES.shape) : VARIABLES);
  if (rollback !== undefined) {
    if (!/^[0-9a-f]{16}$/.test(rollback)) throw new UsageError('The id of a run has 16 hexadecimal digits.');
    return { source: await readJournal(rollback, retryOptions), run: rollbackOf(rollback) };
  }
  const source = map === undefined ? await readExternalIds(retryOptions) : readMapFile(map);
  return { source, run: runOf(source.lines) };
}

function describe({ line, kind, oldId, newId, otherLine }: Collision): string {
  const ids = oldId === undefined || newId === undefined ? '' : `: ${shown(oldId)} -> ${shown(newId)}`;
  return `line ${line}: ${kind}${otherLine === undefined ? '' : ` (line ${otherLine})`}${ids}. ${REMEDIES[kind]}.`;
}

function daysOf(value: string): number {
  if (!/^[1-9]\d{0,2}$/.test(value))
    throw new UsageError('--window-days must be a whole number from 1 to 999');
  return Number(value);
}

async function main(): Promise<ExitCode> {
  const { values } = parseArgs({
    options: {
      map: { type: 'string' },
      'external-id': { type: 'boolean', default: false },
      rollback: { type: 'string' },
      'dry-run': { type: 'boolean', default: false },
      'window-days': { type: 'string', default: '30' },
      'retry-seconds': { type: 'string', default: '120' },
    },
  });
  const days = daysOf(values['window-days']);
  const seconds = secondsOf(values['retry-seconds'], 'retry-seconds');
  const progress = showProgress();
  const retryOptions = {
    seconds,
    onWait: (reason: string, wait: number) => progress.say(`${reason}. Retry in ${wait} s`),
  };
  const { source, run } = await readSource(values, retryOptions);
  const { lines } = source;
  const figures = { toMove: 0, alreadyMoved: 0, collisions: [...source.collisions] };

  /** Checks the lines or, without `dryRun`, moves the users to their new ids. Returns false if an error stopped it early. */
  const runAll = async (options: Pick<RelinkOptions, 'dryRun'>): Promise<boolean> => {
    let done = 0;
    try {
      for await (const step of relink(lines, { run, days, retryOptions, ...options })) {
        figures.toMove += step.toMove;
        figures.alreadyMoved += step.alreadyMoved;
        figures.collisions.push(...step.collisions);
        done += step.toMove + step.alreadyMoved;
        progress.at(done);
      }
      return true;
    } catch (error) {
      progress.say(`Stopped early: ${safeMessage(error)}`);
      return false;
    }
  };

  const total = lines.length + figures.collisions.length;
  if (total === 0) throw new UsageError('There is no user to move.');
  progress.expect(lines.length);
  let isComplete = await runAll({ dryRun: true });
  const isApplied = isComplete && !values['dry-run'] && figures.collisions.length === 0;
  if (isApplied) {
    Object.assign(figures, { toMove: 0, alreadyMoved: 0 });
    progress.say(`Run ${run}`);
    isComplete = await runAll({});
  }
  progress.end();
  const collisions = figures.collisions.toSorted((one, other) => one.line - other.line);
  for (const collision of collisions) process.stdout.write(`${describe(collision)}\n`);
  process.stdout.write(
    `${total} lines, ${figures.toMove} ${isApplied ? 'moved' : 'to move'}, ${figures.alreadyMoved} already moved, ${collisions.length} collisions\n`,
  );
  if (isApplied) process.stdout.write(`To undo this: npm run users:relink -- --rollback ${run}\n`);
  else process.stdout.write('Nothing was changed.\n');
  if (!isComplete) process.stderr.write('Run the same command again.\n');
  return isComplete && collisions.length === 0 ? 0 : 1;
}

await runCommand(USAGE, main);
