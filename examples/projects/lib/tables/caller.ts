import { database, type Transaction } from '../storage/database';

/** The internal ids of a user and of the tenant in which the user acts. The context of `guardTenant` contains both. */
export interface Caller {
  readonly tenantId: string;
  readonly userId: string;
}

/**
 * Runs statements in a transaction. The row-level security policies limit them to the caller's tenant and, in `project_notes`, to
 * the user. The settings end with the transaction, so they work with a transaction pooler.
 */
export function asCaller<T>(
  { tenantId, userId }: Caller,
  run: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  return database().$transaction(async (transaction) => {
    await transaction.$executeRaw`
      SELECT set_config('app.tenant_id', ${tenantId}, true), set_config('app.user_id', ${userId}, true)`;
    return run(transaction);
  });
}
