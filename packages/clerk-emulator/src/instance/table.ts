/** Rows by id, in the order of insertion. Rows are immutable: a change replaces the row. */
export type Table<Row extends { readonly id: string }> = ReturnType<typeof openTable<Row>>;

/** Returns a table with the given rows. It calls `changed` after each change. */
export function openTable<Row extends { readonly id: string }>(rows: readonly Row[], changed: () => void) {
  const byId = new Map(rows.map((row) => [row.id, row]));
  const all = () => [...byId.values()];
  return {
    get: (id: string): Row | undefined => byId.get(id),
    put<NewRow extends Row>(row: NewRow): NewRow {
      byId.set(row.id, row);
      changed();
      return row;
    },
    delete(id: string): void {
      if (byId.delete(id)) changed();
    },
    clear() {
      byId.clear();
      changed();
    },
    all,
    size: () => byId.size,
    find(matches: (row: Row) => boolean): Row | undefined {
      for (const row of byId.values()) if (matches(row)) return row;
      return undefined;
    },
    /** `JSON.stringify` calls this function. */
    toJSON: all,
  };
}
