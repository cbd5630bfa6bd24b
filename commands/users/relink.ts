import { createReadStream } from 'node:fs';
import * as z from 'zod/mini';
import type { RetryOptions } from '#lib/concurrency/retry';
import { parseEnvironmentSubset, variables } from '#lib/env';
import { readJournal, relink, rollbackOf, runOf } from '#lib/users/relink';
import { type CheckedMap, type Collision, parseMap, REMEDIES, readExternalIds } from '#lib/users/relink-map';
import { type ExitCode, safeMessage, shown, UsageError } from '../command';
import { showProgress } from '../progress';

const VARIABLES = z.pick(variables, { DATABASE_URL: true, KV_REST_API_URL: true, KV_REST_API_TOKEN: true });
const PROVIDER_VARIABLES = z.pick(variables, { IDP_SECRET_KEY: true, CLERK_API_URL: true });

interface Options {
  readonly map?: string;
  readonly externalId?: boolean;
  readonly rollback?: string;
  readonly dryRun?: boolean;
  readonly windowDays: number;
  readonly retrySeconds: number;
}

async function readMapFile(path: string): Promise<CheckedMap> {
  try {
    return await parseMap(createReadStream(path));
  } catch (error) {
    throw new UsageError(`Cannot read ${path}. ${safeMessage(error)}`);
  }
}

/**
 * Reads the map of old and new ids from a file, the provider or the journal of a run. The options must select exactly one of
 * these sources. Returns the map, and the id of the run that applies this map.
 */
async function readSource(
  { map, externalId, rollback }: Options,
  retryOptions: RetryOptions,
): Promise<{ readonly source: CheckedMap; readonly run: string }> {
  if ([map !== undefined, externalId, rollback !== undefined].filter(Boolean).length !== 1)
    throw new UsageError('Pass one of --map, --external-id and --rollback.');
  parseEnvironmentSubset(externalId ? z.extend(VARIABLES, PROVIDER_VARIABLES.shape) : VARIABLES);
  if (rollback !== undefined)
    return { source: await readJournal(rollback, retryOptions), run: rollbackOf(rollback) };
  const source = await (map === undefined ? readExternalIds(retryOptions) : readMapFile(map));
  return { source, run: runOf(source.lines) };
}

const describe = ({ line, kind, oldId, newId }: Collision) =>
  `line ${line}: ${kind}: ${shown(oldId)} -> ${shown(newId)}. ${REMEDIES[kind]}.`;

/** `npm run users -- relink` */
export async function relinkUsers(options: Options): Promise<ExitCode> {
  const { at, say, end, retryOptions } = showProgress('users', options.retrySeconds);
  const { source, run } = await readSource(options, retryOptions);
  const { lines } = source;
  const figures = { toMove: 0, alreadyMoved: 0, collisions: [...source.collisions] };

  /** Checks the lines or, without `dryRun`, moves the users to their new ids. Returns false if an error stopped it early. */
  const runAll = async (dryRun: boolean): Promise<boolean> => {
    Object.assign(figures, { toMove: 0, alreadyMoved: 0 });
    try {
      for await (const step of relink(lines, { run, days: options.windowDays, retryOptions, dryRun })) {
        figures.toMove += step.toMove;
        figures.alreadyMoved += step.alreadyMoved;
        figures.collisions.push(...step.collisions);
        at(figures.toMove + figures.alreadyMoved);
      }
      return true;
    } catch (error) {
      say(`Stopped early: ${safeMessage(error)}`);
      return false;
    }
  };

  const total = lines.length + figures.collisions.length;
  if (total === 0) throw new UsageError('There is no user to move.');
  let isComplete = await runAll(true);
  const isApplied = isComplete && !options.dryRun && figures.collisions.length === 0;
  if (isApplied) {
    say(`Run ${run}`);
    isComplete = await runAll(false);
  }
  end();
  const collisions = figures.collisions.toSorted((one, other) => one.line - other.line);
  for (const collision of collisions) process.stdout.write(`${describe(collision)}\n`);
  process.stdout.write(
    `${total} lines, ${figures.toMove} ${isApplied ? 'moved' : 'to move'}, ${figures.alreadyMoved} already moved, ${collisions.length} collisions\n`,
  );
  if (isApplied) process.stdout.write(`To undo this: npm run users -- relink --rollback ${run}\n`);
  else process.stdout.write('Nothing was changed.\n');
  if (!isComplete) process.stderr.write('Run the same command again.\n');
  return isComplete && collisions.length === 0 ? 0 : 1;
}
