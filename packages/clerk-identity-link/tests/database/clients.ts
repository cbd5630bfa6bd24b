import { createClerkClient } from '@clerk/backend';
import { PrismaPg } from '@prisma/adapter-pg';
import { isNull, type SQL, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { pgTable, serial, text, timestamp } from 'drizzle-orm/pg-core';
import { Pool } from 'pg';
import { afterAll, vi } from 'vitest';
import { createTestDatabase, serverOfThisRun } from '../../../../tests/harness/dependencies/database';
import { startFetchServer } from '../../../../tests/harness/dependencies/stub-server';
import { SECRET_KEY } from '../../../../tests/harness/keys';
import { stopAfterAll } from '../../../../tests/vitest/stop-after-all';
import { identityLink, type LinkTable } from '../../src';
import { drizzleTable } from '../../src/drizzle';
import { prismaTable } from '../../src/prisma';
import type { Options } from '../../src/table';
import { PrismaClient } from './generated/client';

/** In the collation, the lower case of U+212A (Kelvin) is `k`. */
export const TABLES = `
  CREATE TABLE "Log" (id SERIAL);
  CREATE TABLE "User" (id SERIAL PRIMARY KEY, "clerkId" TEXT UNIQUE, email TEXT COLLATE pg_c_utf8 UNIQUE, name TEXT,
    "deletedAt" TIMESTAMP(3))`;
export const users = pgTable('User', {
  id: serial().primaryKey(),
  clerkId: text().unique(),
  email: text().unique(),
  name: text(),
  deletedAt: timestamp(),
});
export const USER = { id: 'id', clerkId: 'clerkId' } as const;

export const database = await createTestDatabase({ ...serverOfThisRun(), template: 'template0' });
await database.pool.query(TABLES);
const closing: (() => Promise<unknown>)[] = [];
/** Closes something after the tests, before the database is dropped. */
export const closeAfterAll = (close: () => Promise<unknown>) => void closing.unshift(close);
afterAll(async () => {
  for (const close of closing) await close();
  await database.drop();
});

export function createPool(connectionString = database.url, max = 10): Pool {
  const pool = new Pool({ connectionString, max });
  closeAfterAll(() => pool.end());
  return pool;
}
export function createPrisma(max = 10): PrismaClient {
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: database.url, max }) });
  closeAfterAll(() => prisma.$disconnect());
  return prisma;
}

/** The transaction of both clients. */
export type Transaction =
  | { $executeRawUnsafe(statement: string): PromiseLike<unknown> }
  | { execute(statement: SQL): PromiseLike<unknown> };
/** Writes a row to "Log" in a transaction. */
export function log(transaction: Transaction): PromiseLike<unknown> {
  const statement = 'INSERT INTO "Log" DEFAULT VALUES';
  return '$executeRawUnsafe' in transaction
    ? transaction.$executeRawUnsafe(statement)
    : transaction.execute(sql.raw(statement));
}
/** The options of a table, for both clients. */
type Rules = Omit<
  Options<'user', { email: string }, { email?: string }, Transaction, never, { email?: string }, never>,
  'id' | 'clerkId' | 'kind' | 'where'
>;
/** Each creates a table with a client of its own, as a process does. */
export const CLIENTS = {
  Prisma(rules: Rules, max?: number) {
    const prisma = createPrisma(max);
    return prismaTable(() => prisma, 'user', { ...USER, ...rules, where: { deletedAt: null } });
  },
  Drizzle(rules: Rules, max?: number) {
    const db = drizzle(createPool(database.url, max));
    return drizzleTable(() => db, users, { ...USER, ...rules, where: isNull(users.deletedAt) });
  },
};

/** The Backend API of Clerk with these users. The last address in a response is the primary one. */
const known = new Map<string, readonly { readonly email: string; readonly status?: string }[]>();
export const failures: Response[] = [];
const server = stopAfterAll(
  await startFetchServer(({ url }) => {
    const id = new URL(url).pathname.split('/').at(-1) ?? '';
    const addresses = known.get(id);
    const failure = failures.shift();
    if (failure || !addresses) return failure ?? Response.json({ errors: [] }, { status: 404 });
    const email_addresses = addresses.map(({ email, status = 'verified' }) => ({
      id: email,
      email_address: email,
      verification: { status },
      linked_to: [],
    }));
    return Response.json({
      object: 'user',
      id,
      email_addresses,
      primary_email_address_id: addresses.at(-1)?.email,
    });
  }),
);
export const clerk = createClerkClient({ secretKey: SECRET_KEY, apiUrl: server.url });
/** Returns the number of requests for a user. */
export const calls = (id: string) => server.calls.filter((call) => call.endsWith(`/${id}`)).length;
/** Creates a user at Clerk, whose last address is the primary one. */
export function createUser(emails?: readonly string[], status = 'verified') {
  const id = `user_${crypto.randomUUID()}`;
  const email = `${id}@example.com`;
  const addresses = (emails ?? [email]).map((each) => ({ email: each, status }));
  known.set(id, addresses);
  return { id, email };
}
export const deleteUser = (id: string) => known.delete(id);

export const onError = vi.fn();
export const surroundings = {
  clerk: async () => clerk,
  headers: async () => undefined,
  registerTenant: async () => undefined,
  onError,
};
/** Registers the user of a verified session. */
export const visit = (table: LinkTable, id: string) =>
  table.insert(id, { ...surroundings, isVerified: true });
export const register = (table: LinkTable, id: string) =>
  identityLink({ users: table }, { clerk, onError }).register(id);
