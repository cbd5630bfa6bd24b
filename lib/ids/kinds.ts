/**
 * Kinds of internal ids, each with the names of its tables and columns. A tenant is an organization of the identity provider.
 * Each kind has a table of its own, because foreign keys of other tables refer to it, and its unique key makes a link exactly
 * once.
 */
export const KINDS = {
  user: {
    table: 'users',
    column: 'identity_provider_user_id',
    previousIds: 'previous_ids',
    owner: 'user_id',
    pendingDeletions: 'pending_deletions',
  },
  tenant: {
    table: 'tenants',
    column: 'identity_provider_organization_id',
    previousIds: 'previous_tenant_ids',
    owner: 'tenant_id',
    pendingDeletions: 'pending_tenant_deletions',
  },
} as const;

export type Kind = keyof typeof KINDS;
