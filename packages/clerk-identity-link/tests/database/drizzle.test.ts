import { neon, neonConfig } from '@neondatabase/serverless';
import { sql } from 'drizzle-orm';
import { drizzle as drizzleHttp } from 'drizzle-orm/neon-http';
import { drizzle } from 'drizzle-orm/node-postgres';
import { pgTable, serial, text, unique, uniqueIndex, withReplicas } from 'drizzle-orm/pg-core';
import { Client } from 'pg';
import { expect, expectTypeOf, onTestFinished, test } from 'vitest';
import { createTestDatabase, serverOfThisRun } from '../../../../tests/harness/dependencies/database';
import { drizzleTable } from '../../src/drizzle';
import {
  closeAfterAll,
  createPool,
  createUser,
  database,
  register,
  surroundings,
  TABLES,
  USER,
  users,
} from './clients';

/** Runs the requests of Neon's driver, which has one HTTP request for each statement. */
neonConfig.fetchFunction = async (_url: string, { body }: { body: string }) => {
  const { query, params } = JSON.parse(body);
  const types = { getTypeParser: () => String };
  const result = await database.pool.query({ text: query, values: params, rowMode: 'array', types });
  return Response.json(result);
};

test('A driver without transactions inserts rows with and without columns. claim and onInsert are an error that names others', async () => {
  const db = drizzleHttp(neon(database.url));
  const withColumns = drizzleTable(() => db, users, {
    ...USER,
    columns: async (_user, { verifiedEmail, transaction }) => ({
      email: verifiedEmail,
      name: String(transaction),
    }),
  });
  for (const table of [drizzleTable(() => db, users, USER), withColumns]) {
    const { id } = createUser();
    await expect(table.rehearse?.(id, surroundings)).rejects.toThrow('no transactions');
    const registered = await Promise.all(Array.from({ length: 5 }, () => register(table, id)));
    expect(registered.filter((each) => each?.created)).toHaveLength(1);
    expect(new Set(registered.map((each) => each?.userId))).toEqual(new Set([await table.find(id)]));
  }
  const names = await database.pool.query('SELECT DISTINCT name FROM "User" WHERE name IS NOT NULL');
  expect(names.rows).toEqual([{ name: 'undefined' }]);
  type Rejected = Parameters<typeof drizzleTable<typeof db, typeof users, 'clerkId', object>>[2];
  expectTypeOf<Rejected['claim'] | Rejected['onInsert']>().toEqualTypeOf<undefined>();
  const untyped: Omit<typeof db, 'batch'> = db;
  for (const rules of [{ claim: 'email' }, { onInsert: async () => undefined }] as const) {
    const table = drizzleTable(() => untyped, users, { ...USER, ...rules });
    await expect(register(table, createUser().id)).rejects.toThrow('Drivers: node-postgres');
    await expect(table.rehearse?.(createUser().id, surroundings)).rejects.toThrow('Drivers: node-postgres');
  }
});

test('After a lost race, the row of the winner is read where it was written, not from a replica that is behind', async () => {
  const replica = await createTestDatabase({ ...serverOfThisRun(), template: 'template0' });
  closeAfterAll(() => replica.drop());
  await replica.pool.query(TABLES);
  const [primary, behind] = [drizzle(createPool()), drizzle(createPool(replica.url))];
  const db = withReplicas(primary, [behind]);
  for (const table of [
    drizzleTable(() => db, users, { ...USER, claim: 'email' }),
    drizzleTable(() => db, users, USER),
  ]) {
    const { id } = createUser();
    const registered = [
      ...(await Promise.all(Array.from({ length: 5 }, () => register(table, id)))),
      await register(table, id),
    ];
    expect(registered.filter((each) => each?.created)).toHaveLength(1);
    expect(new Set(registered.map((each) => each?.userId)).size).toBe(1);
    expect(registered[0]?.userId).toBeDefined();
  }
});

test('A transaction on a single Client of pg is an error, because concurrent ones would share it', async () => {
  const client = new Client({ connectionString: database.url });
  await client.connect();
  onTestFinished(() => client.end());
  const db = drizzle(client);
  const { id } = createUser();
  const table = drizzleTable(() => db, users, { ...USER, claim: 'email' });
  await expect(register(table, id)).rejects.toThrow('Pass a Pool to drizzle()');
  expect(await table.find(id)).toBeUndefined();
});

test('A table whose column of the id at Clerk has no unique key of its own for all rows is an error', () => {
  const columns = { id: serial().primaryKey(), clerkId: text().notNull(), name: text() };
  const create = (table: ReturnType<typeof pgTable<'User', typeof columns>>) =>
    drizzleTable(() => drizzle.mock(), table, USER);
  for (const table of [
    pgTable('User', columns, (t) => [unique().on(t.clerkId)]),
    pgTable('User', columns, (t) => [uniqueIndex().on(t.clerkId)]),
    pgTable('User', { ...columns, clerkId: text().notNull().unique() }),
  ])
    expect(create(table)).toBeDefined();
  for (const table of [
    pgTable('User', columns),
    pgTable('User', columns, (t) => [unique().on(t.clerkId, t.name)]),
    pgTable('User', columns, (t) => [uniqueIndex().on(t.clerkId).where(sql`name IS NULL`)]),
  ])
    expect(() => create(table)).toThrow('The column clerkId needs a unique key');
});
