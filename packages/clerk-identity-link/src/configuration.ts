import { channel } from 'node:diagnostics_channel';
import type { Organization, User } from '@clerk/backend';
import type { Existing } from '../../../lib/core/ports';

/** The part of Clerk's client that reads the user or the organization of a new row. */
export interface ClerkClient {
  readonly users: { getUser(id: string): Promise<User> };
  readonly organizations: { getOrganization(of: { organizationId: string }): Promise<Organization> };
}

/** What a table may use while it inserts a row. */
export interface Surroundings {
  clerk(): Promise<ClerkClient>;
  /** Returns the headers of the current request, or undefined outside of a request. */
  headers(): Promise<Pick<Headers, 'get'> | undefined>;
  /** Registers an organization, which gets its row first. Returns undefined for one that Clerk does not have. */
  registerTenant(organizationId: string): Promise<{ tenantId: string; created: boolean } | undefined>;
  /** Reports an error that no response shows. */
  readonly onError: OnError;
  /** True if a session of the user has been verified, so that Clerk has the user. */
  readonly isVerified?: boolean;
}

/** Creates the reason why the doctor cannot try something. It is not a failure. */
export const notTried = (message: string) => Object.assign(new Error(message), { name: 'NotTried' });

/** A store of links. All processes must share it, and it must hold at most one row for each id of Clerk. */
export interface LinkTable {
  /** Returns the internal id of a user or an organization of Clerk. Returns null for a row that gets a 401 or a 403. */
  find(clerkId: string): Promise<string | null | undefined>;
  /** Inserts a row. Returns its internal id only to the call that inserted it, and to another one undefined or the existing row. */
  insert(clerkId: string, surroundings: Surroundings): Promise<string | Existing | undefined>;
  /** Returns false for an id that has just got no row from `insert`, although there is none. */
  exists(clerkId: string, surroundings: Surroundings): Promise<boolean>;
  /** Inserts a row, and rolls back. Rejects without a unique key. Returns false if there is no row. The doctor calls it. */
  rehearse?(clerkId: string, surroundings: Surroundings): Promise<boolean>;
}

export interface Tables {
  readonly users: LinkTable;
  readonly tenants?: LinkTable;
}

/** Reports the error behind a 500 or 503, and of `onCreated`. The client does not get it. */
export type OnError = (error: unknown, request: string) => void;

export type Configuration = Surroundings & { readonly tables: Tables };

/** Announces each new link, so that the doctor finds the tables of an application. */
export const created = channel('clerk-identity-link');

/** Returns the signing secrets of the environment, separated by white space or commas. An empty variable is not set. */
export function signingSecrets(): string[] {
  const { CLERK_WEBHOOK_SIGNING_SECRET = '', CLERK_WEBHOOK_SECRET = '' } = process.env;
  const secrets = (CLERK_WEBHOOK_SIGNING_SECRET.trim() || CLERK_WEBHOOK_SECRET).match(/[^\s,]+/g) ?? [];
  if (!secrets.every((secret) => /^(?:whsec_)?[A-Za-z0-9+/]{32,86}={0,2}$/.test(secret)))
    throw new Error('CLERK_WEBHOOK_SIGNING_SECRET is not a signing secret (whsec_…).');
  return secrets;
}
