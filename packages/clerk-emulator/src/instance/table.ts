/** Rows by id, in the order of insertion. Rows are immutable: a change replaces the row. */
export interface Table<Row extends { readonly id: string }> {
  get(id: string): Row | undefined;
  put<NewRow extends Row>(row: NewRow): NewRow;
  delete(id: string): void;
  clear(): void;
  all(): Row[];
  size(): number;
  find(matches: (row: Row) => boolean): Row | undefined;
  /** Returns all rows. `JSON.stringify` calls this function. */
  toJSON(): Row[];
}

/** Returns a table with the given rows. It calls `changed` after each change. */
export function openTable<Row extends { readonly id: string }>(
  rows: readonly Row[],
  changed: () => void,
): Table<Row> {
  const byId = new Map(rows.map((row) => [row.id, row]));
  const all = () => [...byId.values()];
  return {
    get: (id) => byId.get(id),
    put(row) {
      byId.set(row.id, row);
      changed();
      return row;
    },
    delete(id) {
      if (byId.delete(id)) changed();
    },
    clear() {
      byId.clear();
      changed();
    },
    all,
    size: () => byId.size,
    find(matches) {
      for (const row of byId.values()) if (matches(row)) return row;
      return undefined;
    },
    toJSON: all,
  };
}
