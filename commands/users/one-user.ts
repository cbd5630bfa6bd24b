import * as z from 'zod/mini';
import { variables } from '#lib/env';
import { findLinks, type Link } from '#lib/users/rows';
import { UsageError } from '../command';

/** What a command over one user needs of the environment. */
export const VARIABLES = z.pick(variables, {
  IDP_SECRET_KEY: true,
  DATABASE_URL: true,
  KV_REST_API_URL: true,
  KV_REST_API_TOKEN: true,
  CLERK_API_URL: true,
});

/** The one id that a command was given. */
export function onlyId(words: readonly string[]): string {
  const [id, ...more] = words;
  if (id === undefined || id === '' || more.length > 0)
    throw new UsageError('One id is needed, of either kind.');
  if (id.includes('\0') || !id.isWellFormed()) throw new UsageError('Nobody can have such an id.');
  return id;
}

/** The link of an id of either kind; undefined where there is none. Refuses to guess between two. */
export async function linkOf(eitherId: string): Promise<Link | undefined> {
  const [link, other] = await findLinks(eitherId);
  if (other !== undefined)
    throw new Error(
      "This is the internal id of one user and the provider's id of another: give the other id.",
    );
  return link;
}
