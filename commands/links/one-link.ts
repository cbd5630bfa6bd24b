import * as z from 'zod/mini';
import { parseEnvironmentSubset, variables } from '#lib/base/env';
import { TransientError } from '#lib/base/errors';
import { retry } from '#lib/base/retry';
import { listById } from '#lib/clerk/backend-api';
import type { Kind } from '#lib/core/ports';
import { readCachedId } from '#lib/ids/cache';
import { forgottenUntil } from '#lib/ids/store';
import { exportUser } from '#lib/operator/export';
import { deletionDueAt } from '#lib/operator/pending-deletions';
import { allIdsOf, findRows, type LinkRow } from '#lib/operator/rows';
import { exportOwnTables } from '#lib/tables/export-user';
import { providers } from '#providers';
import { type ExitCode, print, shown } from '../command';

/** The word for the resource of the provider. */
export const NOUNS = { user: 'user', tenant: 'organization' } as const;

export const VARIABLES = z.pick(variables, {
  IDP_SECRET_KEY: true,
  DATABASE_URL: true,
  KV_REST_API_URL: true,
  KV_REST_API_TOKEN: true,
  CLERK_API_URL: true,
});

/** The providers that can tell which users they have. */
export const ASKED = ['Clerk', ...providers.flatMap(({ name, has }) => (has ? [name] : []))].join(' or ');

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

export const findAtProvider = async (kind: Kind, providerId: string) =>
  (await retry(RETRY, () => listById(kind, [providerId])))[0];

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

/** `npm run users -- show`, `npm run tenants -- show` */
export async function showOne(kind: Kind, id: string): Promise<ExitCode> {
  parseEnvironmentSubset(VARIABLES);
  const link = await linkOf(kind, id);
  const providerId = link?.providerId ?? id;
  const until = (await forgottenUntil(kind, [providerId])).get(providerId);
  const dueAt = await deletionDueAt(kind, link ? allIdsOf(link) : [id]);
  const atProvider = await findAtProvider(kind, providerId);
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
    [
      'Clerk',
      atProvider
        ? `has this ${NOUNS[kind]}, created at ${new Date(atProvider.createdAt).toISOString()}`
        : `has no such ${NOUNS[kind]}`,
    ],
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
