import * as z from 'zod/mini';
import { parseEnvironmentSubset, variables } from '#lib/base/env';
import type { Kind } from '#lib/core/ports';
import { type RecordedChange, readHistory } from '#lib/operator/history';
import { waitForLongQueries } from '#lib/storage/database';
import { type ExitCode, print, printable, shown } from '../command';

function lineOf(change: RecordedChange) {
  if ('unreadable' in change) return `A row that this command cannot read: ${change.unreadable}`;
  const { changedAt, operation, internalId, idHash, run, counts, by, reason } = change;
  const link = idHash === null ? '' : ` ${shown(idHash)} (${internalId ?? 'not linked'})`;
  const figures = Object.entries(counts ?? {}).map(([outcome, count]) => `${count} ${printable(outcome)}`);
  const ofRun = run === null ? '' : ` run ${shown(run)}${counts ? ` (${figures.join(', ')})` : ''}`;
  const why = reason === null ? '' : `: ${shown(reason)}`;
  return `${changedAt.toISOString()} ${shown(operation)}${link}${ofRun} by ${shown(by)}${why}`;
}

/** `npm run users -- history`, `npm run tenants -- history` */
export async function showHistory(
  kind: Kind,
  id: string | undefined,
  { json, limit }: { readonly json?: boolean; readonly limit: number },
): Promise<ExitCode> {
  waitForLongQueries();
  parseEnvironmentSubset(z.pick(variables, { DATABASE_URL: true }));
  const changes = await readHistory(kind, id ?? null, limit);
  if (json) print(JSON.stringify(changes, null, 2));
  else for (const change of changes) print(lineOf(change));
  if (changes.length === limit) process.stderr.write(`Older rows may exist: pass --limit.\n`);
  return changes.length > 0 ? 0 : 1;
}
