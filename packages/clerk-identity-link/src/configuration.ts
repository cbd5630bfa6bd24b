import { channel } from 'node:diagnostics_channel';
import type { Organization, User } from '@clerk/backend';

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
}

/** A store of links. All processes must share it, and it must hold at most one row for each id of Clerk. */
export interface LinkTable {
  /** Returns the internal id of a user or an organization of Clerk. */
  find(clerkId: string): Promise<string | undefined>;
  /** Inserts a row. Returns its internal id only to the call that inserted it. */
  insert(clerkId: string, surroundings: Surroundings): Promise<string | undefined>;
  /** Returns false for a user or an organization that gets no row, such as one that Clerk does not have. */
  exists(clerkId: string, surroundings: Surroundings): Promise<boolean>;
  /** Inserts a row, and rolls back. Rejects without a unique key. Returns false if there is no row. The doctor calls it. */
  rehearse?(clerkId: string, surroundings: Surroundings): Promise<boolean>;
}

export interface Tables {
  readonly users: LinkTable;
  readonly tenants?: LinkTable;
}

/** Reports the error behind a 500, which the client does not get. */
export type OnError = (error: unknown, request: string) => void;

/** The tables of a link, and what they may use. */
export interface Configuration extends Surroundings {
  readonly tables: Tables;
}

/** Announces each new link, so that the doctor finds the tables of an application. */
export const created = channel('clerk-identity-link');
