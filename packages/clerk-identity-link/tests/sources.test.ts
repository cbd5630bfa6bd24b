import ts from 'typescript';
import { expect, test, vi } from 'vitest';
import { temporaryFolder } from '../../../tests/vitest/temporary-folder';
import { findUnlinked } from '../src/sources';
import { writeApplication } from './application';

vi.setConfig({ testTimeout: 180_000 }); // The checker reads thousands of declarations.

const SCHEMA = `
model User {
  id      Int     @id @default(autoincrement())
  email   String  @unique
  clerkId String? @unique
}

model Badge {
  id      Int    @id @default(autoincrement())
  clerkId String @unique
}
`;
const FILES = {
  'lib/schema.ts': `import { pgTable, serial, text } from 'drizzle-orm/pg-core';
export const members = pgTable('members', {
  id: serial().primaryKey(),
  email: text().notNull(),
  clerkId: text('clerk_id').unique(),
});
export const badges = pgTable('badges', { id: serial().primaryKey(), email: text(), clerkId: text().unique() });
`,
  'lib/db.ts': `import { drizzle } from 'drizzle-orm/node-postgres';
import { PrismaClient } from '../generated/client';
import * as schema from './schema';
export const prisma = new PrismaClient({ accelerateUrl: '' }).$extends({ name: 'own' });
export const db = drizzle('', { schema });
`,
  'lib/identity.ts': `import { drizzleTable as table } from 'clerk-identity-link/drizzle';
import { nextLink } from 'clerk-identity-link/next';
import { prismaTable } from 'clerk-identity-link/prisma';
import { db, prisma } from './db';
import { members } from './schema';
const columns = () => ({ email: '' });
export const { getUser, guard, register, webhook } = nextLink({
  users: prismaTable(() => prisma, 'user', { id: 'id', clerkId: 'clerkId', columns, claim: 'email' }),
});
export const link = nextLink({ users: table(() => db, members, { id: 'id', clerkId: 'clerkId', columns } as const) });
`,
};
const IMPORTS = `import { eq as same, inArray, isNotNull } from 'drizzle-orm';
import type { Prisma, PrismaClient } from '@/generated/client';
import { db, prisma } from '@/lib/db';
import { getUser as current, guard as route, webhook } from '@/lib/identity';
import * as schema from '@/lib/schema';
import { badges, members as m } from '@/lib/schema';
const [email, clerkId, ids, url]: [string, string, string[], string] = ['', '', [], 'https://example.com'];
`;

/** The last line of a file of its own. The doctor reports it, or does not. */
const FORMS: readonly (readonly ['FAILURE' | 'WARNING' | 'nothing', string])[] = [
  ['FAILURE', 'prisma.user.create({ data: { email: url, clerkId } });'],
  ['FAILURE', 'const users = prisma.user; users.create({ data: { email, clerkId } });'],
  ['FAILURE', "prisma['user']['create']({ data: { email, clerkId } });"],
  ['FAILURE', '(client?: PrismaClient) => client?.user!.create({ data: { email, clerkId } });'],
  ['FAILURE', 'prisma.$transaction((tx) => tx.user.createMany({ data: [{ email, clerkId }] }));'],
  ['FAILURE', '(tx: Prisma.TransactionClient, data: Prisma.UserCreateInput) => tx.user.create({ data });'],
  ['FAILURE', 'prisma.user.upsert({ where: { email }, create: { email, clerkId }, update: {} });'],
  ['FAILURE', '(given: { clerkId: string }) => prisma.user.create({ data: { email, ...given } });'],
  ['FAILURE', 'prisma.user.findUnique({ where: { clerkId } });'],
  ['FAILURE', 'prisma.user.findFirst({ where: { OR: [{ email }, { clerkId: { equals: clerkId } }] } });'],
  [
    'FAILURE',
    "webhook({ 'user.updated': async ({ id }) => prisma.user.findUnique({ where: { clerkId: id } }) });",
  ],
  ['FAILURE', 'db.insert(m).values({ email, clerkId });'],
  ['FAILURE', 'const t = schema.members; db.transaction((tx) => tx.insert(t).values([{ email, clerkId }]));'],
  ['FAILURE', 'db.select().from(m).where(same(m.clerkId, clerkId));'],
  ['FAILURE', "db.select().from(schema.members).where(same(schema.members['clerkId'], clerkId));"],
  ['FAILURE', 'db.query.members.findFirst({ where: (row, { eq }) => eq(row.clerkId, clerkId) });'],
  ['WARNING', 'db.insert(m).values({ email });'],
  ['WARNING', 'prisma.user.update({ where: { email }, data: { clerkId } });'],
  ['WARNING', 'db.update(m).set({ clerkId }).where(same(m.email, email));'],
  ['WARNING', 'prisma.user.findMany({ where: { clerkId: { in: ids } } });'],
  ['WARNING', 'db.select().from(m).where(inArray(m.clerkId, ids));'],
  ['nothing', 'prisma.user.create({ data: { email } });'],
  ['nothing', 'prisma.user.findMany({ where: { clerkId: { not: null } } });'],
  ['nothing', 'db.select().from(m).where(isNotNull(m.clerkId));'],
  ['nothing', 'prisma.badge.create({ data: { clerkId } }); prisma.badge.findUnique({ where: { clerkId } });'],
  ['nothing', 'db.insert(badges).values({ email, clerkId }); same(badges.clerkId, clerkId);'],
  [
    'nothing',
    'const analytics = { user: { create: (of: object) => of } }; analytics.user.create({ data: { clerkId } });',
  ],
  ['nothing', '(row: typeof m.$inferSelect, log: { insert(row: object): void }) => log.insert(row);'],
  ['nothing', 'prisma.user.update({ where: { clerkId }, data: { clerkId: null } });'],
  ['nothing', '(data: Prisma.UserUpdateInput) => prisma.user.update({ where: { clerkId }, data });'],
  ['nothing', '(where: Prisma.UserWhereInput) => prisma.user.findMany({ where });'],
  [
    'nothing',
    'db.update(m).set({ email }).where(same(m.clerkId, clerkId)); db.delete(m).where(same(m.clerkId, clerkId));',
  ],
  ['nothing', 'async () => [await current(), await prisma.user.findUnique({ where: { clerkId } })];'],
  [
    'nothing',
    'route(async (_, { userId }) => Response.json(await prisma.user.findFirst({ where: { clerkId: userId } })));',
  ],
  ['nothing', '// identity-link: The import runs once.\r\nprisma.user.create({ data: { email, clerkId } });'],
  ['nothing', "'prisma.user.create({ data: { clerkId } })'; // prisma.user.create({ data: { clerkId } })"],
];

test('The doctor follows types: it finds what goes past the link under any name, and nothing else', async () => {
  const folder = temporaryFolder();
  const forms = FORMS.map(([, code], index) => [`forms/${index}.ts`, `${IMPORTS}${code}\n`]);
  await writeApplication(folder, SCHEMA, { ...FILES, ...Object.fromEntries(forms) });
  const found = findUnlinked(ts, folder);
  const kinds = FORMS.map(([, code], index) => [
    found.find((text) => text.includes(`forms/${index}.ts:`))?.split(' ')[0] ?? 'nothing',
    code,
  ]);
  expect(kinds).toEqual(FORMS);
  expect(found.filter((text) => !text.includes('forms/'))).toEqual([]);
});
