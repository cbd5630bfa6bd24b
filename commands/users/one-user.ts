import * as z from 'zod/mini';
import { variables } from '#lib/env';
import { findLinks, type Link } from '#lib/users/rows';
import { UsageError } from '../command';

/** Environment variables that the commands for one user need. */
export const VARIABLES = z.pick(variables, {
  IDP_SECRET_KEY: true,
  DATABASE_URL: true,
  KV_REST_API_URL: true,
  KV_REST_API_TOKEN: true,
  CLERK_API_URL: true,
});

/**
 * Returns the only argument of a command. Throws a UsageError if the number of arguments is not one, or if the argument cannot
 * be an id.
 */
export function onlyId(words: readonly string[]): string {
  const [id, ...more] = words;
  if (id === undefined || id === '' || more.length > 0)
    throw new UsageError('Pass one id: the internal id or the id at the identity provider.');
  if (id.includes('\0') || !id.isWellFormed()) throw new UsageError('Invalid id.');
  return id;
}

/**
 * Returns the link (the row of a user) with this internal id or provider's id, or undefined. Throws if the id belongs to two
 * different links.
 */
export async function linkOf(eitherId: string): Promise<Link | undefined> {
  const [link, other] = await findLinks(eitherId);
  if (other !== undefined)
    throw new Error(
      "This is the internal id of user A and the provider's id of user B. Pass the provider's id of A or the internal id of B.",
    );
  return link;
}
