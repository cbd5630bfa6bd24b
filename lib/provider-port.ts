import type * as z from 'zod/mini';
import type { CheckResult } from './base/check';
import type { Kind } from './core/ports';

/** A user or an organization of the provider. */
export interface ProviderEntry {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** An id that the team can set for a user at the provider. */
  readonly externalId?: string | null | undefined;
  /** The user as a webhook sends it, with personal data. Only a replay reads it (lib/operator/backfill.ts). */
  readonly raw?: unknown;
}

/** Selects a page of the provider's users or organizations, which are sorted by creation time. */
export interface ProviderPage {
  /** Lower limit of the creation time of a user in milliseconds since the epoch, exclusive. */
  readonly createdAfter?: number | undefined;
  readonly offset: number;
  readonly limit: number;
}

/** The users and organizations of a provider. Its functions throw a TransientError for what a later call may do. */
export interface Directory {
  /** Returns a page, in the order of the creation. */
  listPage(kind: Kind, page: ProviderPage): Promise<ProviderEntry[]>;
  /** Omits ids that the provider does not have. */
  listById(kind: Kind, ids: readonly string[]): Promise<ProviderEntry[]>;
  /** Sets the `external_id` of a user, or removes it if it is null. Returns a status of 404 or 422, and throws other errors. */
  setExternalId(id: string, externalId: string | null): Promise<404 | 422 | undefined>;
}

/** The provider whose pages the service shows. What it lacks, no command and no route offers. lib/main-provider.ts names it. */
export interface MainProvider {
  readonly name: string;
  readonly paths: { readonly signIn: string; readonly signUp: string; readonly account: string };
  /** Schema of its own variables. */
  readonly variables?: z.ZodMiniType<object>;
  /** Returns false for an instance with test users. */
  isLive?(): boolean;
  /** Returns the issuer of its OAuth access tokens. */
  issuer?(): string;
  /** Returns the address of the console of the local stack. */
  consoleAddress?(): string | undefined;
  /** Runs the checks of the doctor. */
  check?(): Promise<CheckResult[]>;
  /** Only commands load it. */
  readonly directory?: {
    /** Schema of the variables that it needs, and the name of the required one. */
    readonly variables: z.ZodMiniType<object>;
    readonly key: string;
    load(): Promise<Directory>;
  };
}
