import * as z from 'zod/mini';
import { parseEnvironmentSubset, variables } from '#lib/base/env';
import { UsageError } from '#lib/base/errors';
import { type RetryOptions, retry } from '#lib/base/retry';
import type { Kind } from '#lib/core/ports';
import { type Change, recordRun } from '#lib/operator/history';
import { type RelinkResult, readJournal, relink, rollbackOf, runOf } from '#lib/operator/relink';
import { type MapLine, REMEDIES, readExternalIds } from '#lib/operator/relink-map';
import { type ExitCode, print, shown } from '../command';
import { showProgress } from '../progress';
import { countResults, readMapFile } from './in-bulk';
import { NOUNS, parseVariables, RETRY } from './one-link';

const VARIABLES = z.pick(variables, { DATABASE_URL: true, KV_REST_API_URL: true, KV_REST_API_TOKEN: true });

interface Options extends Change {
  readonly map?: string;
  readonly externalId?: boolean;
  readonly rollback?: string;
  readonly dryRun?: boolean;
  readonly skipCollisions?: boolean;
  readonly windowDays: number;
  readonly retrySeconds: number;
}

/** Reads the map from the only source that the options select. Returns it with the id of the run that applies it. */
async function readSource(
  kind: Kind,
  { map, externalId, rollback }: Options,
  retryOptions: RetryOptions,
): Promise<{ readonly lines: readonly MapLine[]; readonly run: string }> {
  if ([map !== undefined, externalId, rollback !== undefined].filter(Boolean).length !== 1)
    throw new UsageError(`Pass one of --map, ${kind === 'user' ? '--external-id ' : ''}and --rollback.`);
  if (externalId) parseVariables(VARIABLES);
  else parseEnvironmentSubset(VARIABLES);
  if (rollback !== undefined)
    return { lines: await readJournal(kind, rollback, retryOptions), run: rollbackOf(rollback) };
  const lines = await (map === undefined ? readExternalIds(retryOptions) : readMapFile(map, ['old', 'new']));
  return { lines, run: runOf(lines) };
}

const printCollision = ({ line, reason, oldId, newId }: RelinkResult) => {
  const remedy = Object.entries(REMEDIES).find(([kind]) => kind === reason)?.[1];
  print(`line ${line}: ${reason}: ${shown(oldId)} -> ${shown(newId)}. ${remedy}.`);
};

/** `npm run users -- relink`, `npm run tenants -- relink` */
export async function relinkLinks(kind: Kind, options: Options): Promise<ExitCode> {
  const progress = showProgress(`${NOUNS[kind]}s`, options.retrySeconds);
  const { retryOptions } = progress;
  const { lines, run } = await readSource(kind, options, retryOptions);
  if (lines.length === 0) throw new UsageError(`There is no ${NOUNS[kind]} to move.`);
  const isRollback = options.rollback !== undefined;
  const change = { ...options, run };
  const skipped = new Set<number>();
  const relinkLines = (dryRun: boolean) => {
    const toRelink = lines.filter(({ line }) => !skipped.has(line));
    return relink(toRelink, { ...change, kind, isRollback, days: options.windowDays, retryOptions, dryRun });
  };
  let { count, isComplete } = await countResults(progress, relinkLines(true), (collision) => {
    if (options.skipCollisions) skipped.add(collision.line);
    printCollision(collision);
  });
  const isApplied = isComplete && !options.dryRun && count('collision') === skipped.size;
  if (isApplied) {
    progress.say(`Run ${run}`);
    ({ count, isComplete } = await countResults(progress, relinkLines(false), printCollision));
  }
  const moved = isApplied ? 'moved' : 'to move';
  const collided = count('collision') + (isApplied ? skipped.size : 0);
  process.stdout.write(
    `${lines.length} lines, ${count(moved)} ${moved}, ${count('already moved')} already moved, ${collided} collisions\n`,
  );
  // The journal also has the ids of an interrupted run, and those of a transaction whose commit got no response.
  const readLength = () => readJournal(kind, run, { seconds: 0 }).then(({ length }) => length);
  const toUndo = isApplied ? count('moved') || (await readLength().catch(() => undefined)) : 0;
  if (toUndo) process.stdout.write(`To undo this: npm run ${kind}s -- relink --rollback ${run}\n`);
  else if (toUndo === 0) process.stdout.write('Nothing was changed.\n');
  if (!isComplete) process.stderr.write('Run the same command again.\n');
  const counts = { moved: count('moved'), 'already moved': count('already moved') };
  if (isApplied)
    await retry(RETRY, () => recordRun(kind, isRollback ? 'rollback' : 'relink', change, counts));
  return isComplete && collided === 0 ? 0 : 1;
}
