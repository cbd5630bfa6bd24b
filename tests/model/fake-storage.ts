import type { Kind, Stored } from '#lib/core/ports';
import type { LinkRow } from '#lib/operator/rows';

interface Row {
  readonly userId: string;
  /** Present id of the user at the identity provider. */
  present: string;
  /** Earlier ids of the user at the identity provider. */
  readonly previous: Set<string>;
}

/** Returns an error in the shape that Prisma gives to a PostgreSQL error with this SQLSTATE. */
const databaseError = (originalCode: string) =>
  Object.assign(new Error(originalCode), { meta: { driverAdapterError: { cause: { originalCode } } } });

/**
 * Returns fakes of the functions of lib/ that query the database, and of the cache client. Each call passes its statement or
 * command with a name to `schedule`, which decides when to run it. tests/in-process/fake-storage.test.ts checks that the fakes
 * return what the real functions return. Unlike there, previous ids and the marks of forgotten users do not expire, and a
 * session token does not link a forgotten user again.
 */
export function fakeStorage(schedule: <T>(name: string, statement: () => T) => Promise<T>) {
  let rows: Row[] = [];
  let inserted = 0;
  const forgotten = new Set<string>();
  /** Organizations whose deletion is pending. A user with a pending deletion differs in nothing from other users. */
  const pending = new Set<string>();
  const cached = new Map<string, string>();

  const findRow = (id: string) => rows.find(({ present, previous }) => present === id || previous.has(id));
  const linkOf = (id: string): Stored => {
    const row = findRow(id);
    if (row === undefined) return { state: 'none' };
    return pending.has(row.present) ? { state: 'forgotten' } : { state: 'linked', id: row.userId };
  };
  const isForgotten = (id: string) => forgotten.has(id) || pending.has(id);
  /** Inserts nothing if the id is forgotten or is the present id of a user. Throws if the id is a previous id. */
  function insert(id: string): string[] {
    const row = findRow(id);
    if (isForgotten(id) || row?.present === id) return [];
    if (row !== undefined) throw databaseError('23505');
    inserted += 1;
    const userId = `00000000-0000-7000-8000-00000000000${inserted}`;
    rows.push({ userId, present: id, previous: new Set() });
    return [userId];
  }
  function remove(id: string): string[] {
    const row = findRow(id);
    rows = rows.filter((each) => each !== row);
    const ids = row === undefined ? [id] : [row.present, ...row.previous];
    for (const each of ids) forgotten.add(each);
    return ids;
  }
  function linksOf(id: string): LinkRow[] {
    const row = findRow(id);
    if (row === undefined) return [];
    const expiresAt = new Date(0);
    const previousIds = [...row.previous].map((providerId) => ({ providerId, expiresAt }));
    return [{ internalId: row.userId, providerId: row.present, previousIds }];
  }

  return {
    /** lib/ids/store.ts */
    links: {
      findLinks: (_kind: Kind, [id = '']: readonly string[]) =>
        schedule('find', () => {
          const link = linkOf(id);
          return new Map(link.state === 'none' ? [] : [[id, link]]);
        }),
      findLink: (_kind: Kind, id: string) => schedule('find', () => linkOf(id)),
      insertLink: (_kind: Kind, id: string) => schedule('insert', () => insert(id)[0]),
      isForgotten: (_kind: Kind, id: string) => schedule('find forgotten', () => isForgotten(id)),
    },
    /** lib/operator/rows.ts */
    rows: { findRows: (_kind: Kind, id: string) => schedule('find links', () => linksOf(id)) },
    /** lib/operator/delete-link.ts */
    deletion: {
      deleteLink: (_kind: Kind, id: string, _days: number) => schedule('delete', () => remove(id)),
    },
    /** The client of the cache. */
    kv: {
      get: (key: string) => schedule('cache get', () => cached.get(key) ?? null),
      set: (key: string, value: string, options?: { readonly nx?: boolean }) =>
        schedule('cache set', () => {
          if (!options?.nx || !cached.has(key)) cached.set(key, value);
        }),
      del: (...keys: readonly string[]) =>
        schedule('cache delete', () => {
          for (const key of keys) cached.delete(key);
        }),
    },
    /** Returns true if lib/operator/relink.ts would change the id of a user from `from` to `to`. */
    canMove(from: string, to: string): boolean {
      const [row, other] = [findRow(from), findRow(to)];
      return row?.present === from && !forgotten.has(to) && (other === undefined || other === row);
    },
    /** Gives a user a new id, as the transaction of lib/operator/relink.ts does. The old id becomes a previous id. */
    move(from: string, to: string): void {
      const row = findRow(from);
      if (row === undefined) return;
      row.present = to;
      row.previous.delete(to);
      row.previous.add(from);
    },
    /** Schedules the deletion of an organization, as lib/operator/pending-deletions.ts does. */
    scheduleDeletion: (id: string) => schedule('schedule deletion', () => void pending.add(id)),
    /** lib/operator/forget.ts */
    remember: (id: string) => schedule('remember', () => void forgotten.delete(id)),
    insert,
    remove,
    rowOf: (id: string) => findRow(id)?.userId,
    insertedRows: () => inserted,
    cached,
    reset(): void {
      rows = [];
      inserted = 0;
      forgotten.clear();
      pending.clear();
      cached.clear();
    },
  };
}
