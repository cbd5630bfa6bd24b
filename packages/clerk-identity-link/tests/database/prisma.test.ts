import { expect, expectTypeOf, test } from 'vitest';
import { prismaTable } from '../../src/prisma';
import { createPrisma, createUser, database, register, USER, visit } from './clients';
import type { PrismaClient } from './generated/client';
import type { UserCreateManyInput } from './generated/models';

test('A row that an extension of the client hides is not signed in', async () => {
  const hidden = createPrisma().$extends({
    query: {
      user: {
        findUnique: ({ args, query }) =>
          query({ ...args, where: { clerkId: args.where.clerkId ?? '', deletedAt: null } }),
      },
    },
  });
  const table = prismaTable(() => hidden, 'user', { ...USER, columns: async () => ({}) });
  const { id } = createUser();
  await database.pool.query('INSERT INTO "User" ("clerkId", "deletedAt") VALUES ($1, now())', [id]);
  expect([await visit(table, id), await register(table, id)]).toEqual([undefined, undefined]);
});

test('The types accept only a unique column for the id at Clerk', () => {
  type Unique = Parameters<typeof prismaTable<PrismaClient, 'user', 'clerkId', UserCreateManyInput>>[2];
  type Other = Parameters<typeof prismaTable<PrismaClient, 'user', 'name', UserCreateManyInput>>[2];
  expectTypeOf<Unique['clerkId']>().toEqualTypeOf<'clerkId'>();
  expectTypeOf<Other['clerkId']>().toBeNever();
});
