import * as config from '../../identity-link.config';

/** Kinds of internal ids. A tenant is an organization of Clerk. */
export type Kind = 'user' | 'tenant';

/** The part of a Prisma model that links an id of Clerk. The doctor uses the last methods. */
interface Model {
  findUnique(query: { where: object; select?: object | null }): PromiseLike<object | null>;
  createManyAndReturn(query?: {
    data: object;
    skipDuplicates?: boolean;
    select?: object | null;
  }): PromiseLike<object[]>;
  upsert(query: {
    where: object;
    update: object;
    create: object;
    select?: object | null;
  }): PromiseLike<object>;
  count(query?: { where?: object }): PromiseLike<number>;
  deleteMany(query?: { where?: object }): PromiseLike<unknown>;
}

interface Table {
  readonly model: Model;
  readonly id: string;
  readonly clerkId: string;
  otherColumns(clerkId: string): Promise<object | undefined>;
  insert(row: object, skipDuplicates: boolean): PromiseLike<object[]>;
}

/** The exports of the configuration that are optional. */
interface Options {
  readonly users: unknown;
  /** Origins whose requests may use the session cookies, beside the own one. */
  readonly authorizedParties?: readonly string[];
  readonly TENANT_ID?: string;
  readonly ORGANIZATION_ID?: string;
  tenants?(): Model;
  otherTenantColumns?(clerkId: string): Promise<object | undefined>;
}

export const options: Options = config;

/** Returns the table of the configuration. Throws if it names none. */
export function tableOf(kind: Kind): Table {
  const { users, ID, CLERK_ID, otherColumns, insert } = config;
  if (kind === 'user') return { model: users(), id: ID, clerkId: CLERK_ID, otherColumns, insert };
  const { tenants, TENANT_ID: id, ORGANIZATION_ID: clerkId, otherTenantColumns } = options;
  const model = tenants?.();
  if (!model || !id || !clerkId || !otherTenantColumns)
    throw new Error('identity-link.config.ts does not name the table of organizations');
  return {
    model,
    id,
    clerkId,
    otherColumns: otherTenantColumns,
    insert: (row, skipDuplicates) =>
      model.createManyAndReturn({ data: [row], skipDuplicates, select: { [id]: true } }),
  };
}

const read = (row: object, column: string) => String(Reflect.get(row, column));

/** Returns the internal id of a Clerk user or organization. */
export async function findLink(kind: Kind, clerkId: string): Promise<string | undefined> {
  const { model, id, clerkId: column } = tableOf(kind);
  const row = await model.findUnique({ where: { [column]: clerkId }, select: { [id]: true } });
  return row ? read(row, id) : undefined;
}

/**
 * Inserts the row of a Clerk user or organization. Returns the internal id only to the call that inserted the row. Throws an error
 * whose cause names the column if another row has one of the unique values.
 */
export async function insertLink(
  kind: Kind,
  clerkId: string,
  _issuedAt?: number,
): Promise<string | undefined> {
  const table = tableOf(kind);
  const columns = await table.otherColumns(clerkId);
  if (columns === undefined) return undefined;
  const row = { [table.clerkId]: clerkId, ...columns };
  const [inserted] = await table.insert(row, true);
  if (inserted) return read(inserted, table.id);
  if (await findLink(kind, clerkId)) return undefined;
  // `insert` may take over a row that another transaction has just committed. Otherwise, PostgreSQL now names the column.
  try {
    const [second] = await table.insert(row, false);
    return second && read(second, table.id);
  } catch (cause) {
    if (await findLink(kind, clerkId)) return undefined;
    throw new Error(`The row of a new ${kind} cannot be inserted`, { cause });
  }
}

/** Returns true for a user or organization that Clerk does not have. */
export const isForgotten = async (kind: Kind, clerkId: string, _issuedAt?: number): Promise<boolean> =>
  (await tableOf(kind).otherColumns(clerkId)) === undefined;
