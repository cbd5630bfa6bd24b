import * as z from 'zod/mini';
import { parseEnvironmentSubset, variables } from '#lib/base/env';
import { TransientError } from '#lib/base/errors';
import { retry } from '#lib/base/retry';
import type { Kind } from '#lib/core/ports';
import { readCachedId } from '#lib/ids/cache';
import { forgottenUntil } from '#lib/ids/store';
import { mainProvider } from '#lib/main-provider';
import { exportUser } from '#lib/operator/export';
import { directory } from '#lib/operator/paginate';
import { deletionDueAt } from '#lib/operator/pending-deletions';
import { allIdsOf, findRows, type LinkRow } from '#lib/operator/rows';
import { exportOwnTables } from '#lib/tables/export-user';
import { providers } from '#providers';
import { type ExitCode, print, shown } from '../command';

/** The word for the resource of the provider. */
export const NOUNS = { user: 'user', tenant: 'organization' } as const;

export const VARIABLES = z.pick(variables, {
  DATABASE_URL: true,
  KV_REST_API_URL: true,
  KV_REST_API_TOKEN: true,
});

/** Parses the variables of a command that also queries the main provider. */
export const parseVariables = <T>(schema: z.ZodMiniType<T>): T =>
  parseEnvironmentSubset(z.intersection(mainProvider.directory?.variables ?? z.object({}), schema));

/** The providers that can tell which users they have. If it is empty, `check` and `due` would count each user as deleted. */
export const ASKED = [
  ...(mainProvider.directory ? [mainProvider.name] : []),
  ...providers.flatMap(({ name, has }) => (has ? [name] : [])),
].join(' or ');

/** Limit for the retries of a call. The first cache call may exceed its timeout, because it also opens the connection. */
export const RETRY = { seconds: 5 };

/** Returns the link with this internal id or provider's id, or undefined. Throws if the id belongs to two links. */
export async function linkOf(kind: Kind, eitherId: string): Promise<LinkRow | undefined> {
  const [link, other] = await findRows(kind, eitherId);
  if (other !== undefined) {
    const noun = NOUNS[kind];
    throw new Error(
      `This is the internal id of ${noun} A and the provider's id of ${noun} B. Pass the provider's id of A or the internal id of B.`,
    );
  }
  return link;
}

/** Returns the user or organization of the main provider with this id. */
export async function findAtProvider(kind: Kind, providerId: string) {
  const [found] = await retry(RETRY, async () => (await directory()).listById(kind, [providerId]));
  return found;
}

/** Returns the creation time of a link. The first 48 bits of a UUID v7 contain it, in milliseconds since 1970. */
function createdAt(internalId: string): string {
  const milliseconds = Number.parseInt(internalId.replaceAll('-', '').slice(0, 12), 16);
  return internalId[14] === '7'
    ? new Date(milliseconds).toISOString()
    : 'unknown, because the internal id is not a UUID v7 (imported row)';
}

async function describeCache(
  kind: Kind,
  providerId: string,
  internalId: string | undefined,
): Promise<string> {
  const cached = await retry(RETRY, async () => {
    const result = await readCachedId(kind, providerId);
    if (result.outcome === 'error') throw new TransientError('The cache does not respond');
    return result;
  }).catch(() => undefined);
  if (cached === undefined) return 'does not respond';
  if (cached.outcome !== 'hit') return 'no entry';
  if (cached.id === internalId) return 'contains the internal id';
  const noun = NOUNS[kind].toUpperCase();
  return `CONTAINS ${internalId === undefined ? `AN ID, BUT THE ${noun} IS NOT LINKED` : 'ANOTHER ID'}: ${cached.id}`;
}

async function describeEntry(kind: Kind, providerId: string): Promise<string> {
  const entry = await findAtProvider(kind, providerId);
  if (entry === undefined) return `has no such ${NOUNS[kind]}`;
  return `has this ${NOUNS[kind]}, created at ${new Date(entry.createdAt).toISOString()}`;
}

/** `npm run users -- show`, `npm run tenants -- show` */
export async function showOne(kind: Kind, id: string): Promise<ExitCode> {
  parseVariables(VARIABLES);
  const link = await linkOf(kind, id);
  const providerId = link?.providerId ?? id;
  const until = (await forgottenUntil(kind, [providerId])).get(providerId);
  const dueAt = await deletionDueAt(kind, link ? allIdsOf(link) : [id]);
  const lines = [
    ['internal id', link?.internalId ?? 'none: not linked'],
    ...(link ? [['linked', createdAt(link.internalId)]] : []),
    ["provider's id", shown(providerId)],
    ...(link?.previousIds ?? []).map((previous) => [
      'previous id',
      `${shown(previous.providerId)} until ${previous.expiresAt.toISOString()}`,
    ]),
    ...(until === undefined || until === dueAt?.getTime()
      ? []
      : [['forgotten', `until ${new Date(until).toISOString()}`]]),
    ...(dueAt === null ? [] : [['deletion', `due at ${dueAt.toISOString()}`]]),
    ['cache', await describeCache(kind, providerId, link?.internalId)],
    ...(mainProvider.directory ? [[mainProvider.name, await describeEntry(kind, providerId)]] : []),
  ];
  for (const [name = '', value] of lines) print(`${name.padEnd(15)}${value}`);
  return link ? 0 : 1;
}

/** Converts a BigInt to a string, because JSON has no BigInt type. Prisma returns a BigInt for a `bigint` column. */
const replaceBigInt = (_key: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value);

/** `npm run users -- export` */
export async function exportOne(id: string): Promise<ExitCode> {
  parseEnvironmentSubset(VARIABLES);
  const link = await linkOf('user', id);
  const exported = await retry(RETRY, () => exportUser(link?.providerId ?? id, link, exportOwnTables));
  print(JSON.stringify(exported, replaceBigInt, 2));
  return link ? 0 : 1;
}
