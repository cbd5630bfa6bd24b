import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import { expect, test, vi } from 'vitest';
import { temporaryFolder } from '../../../tests/vitest/temporary-folder';
import { init } from '../src/init';
import { loadTypeScript } from '../src/project';
import { writeApplication } from './application';

vi.setConfig({ testTimeout: 180_000 }); // The checker reads thousands of declarations.

const PRISMA = `/* A comment
model Ignored { } */
model Subscription { // x
  id      Int    @id
  clerkId String @unique
}

model Teammate {
  id      Int    @id
  clerkId String @unique
}

model User {
  id      String @id @default(uuid())
  clerkId String
  email   String @unique
  name    String
  plan    String
  locale  String @default("en")

  @@unique([clerkId])
}

model Team {
  id         Int    @id @default(autoincrement())
  clerkOrgId String @unique
  name       String
}
`;
const DATABASE = {
  'packages/database/package.json': '{ "name": "@repo/database", "main": "src/index.ts" }',
  'packages/database/src/index.ts': `import { PrismaClient } from '../../../generated/client';
export const createClient = (accelerateUrl: string) => new PrismaClient({ accelerateUrl });
export const database = createClient('');
`,
  'apps/web/package.json': '{}',
  'apps/web/tsconfig.json': '{ "extends": "../../tsconfig.json" }',
  'apps/web/data/index.ts': '',
};
const DRIZZLE = {
  'src/db/schema.ts': `import { pgTable, text, timestamp } from 'drizzle-orm/pg-core';
export const sessions = pgTable('sessions', { id: text().primaryKey() });
export const accounts = pgTable('accounts', { id: text().primaryKey(), email: text().notNull(), created: timestamp() });
`,
  'src/db/index.ts': `import { drizzle } from 'drizzle-orm/node-postgres';
import * as schema from './schema';
const db = drizzle('', { schema });
export default db;
`,
};

/** Returns what the command prints, and the module that it writes, without the path of the application. */
function runInit(application: string, file: string) {
  const log = vi.spyOn(console, 'log').mockReturnValue();
  init(ts, application);
  const printed = log.mock.calls.map(([line]) => String(line).replaceAll(application, ''));
  log.mockRestore();
  return { printed, lines: readFileSync(path.join(application, file), 'utf8').split('\n') };
}

test('In a monorepo, init links the users, follows package.json, and names each line that tsc rejects and each other model', async () => {
  const folder = temporaryFolder();
  await writeApplication(folder, PRISMA, DATABASE);
  mkdirSync(path.join(folder, 'apps/web/node_modules/@repo'), { recursive: true });
  symlinkSync('../../../../packages/database', path.join(folder, 'apps/web/node_modules/@repo/database'));
  const { printed, lines } = runInit(path.join(folder, 'apps/web'), 'lib/identity.ts');
  expect(lines).toContain("import { database } from '@repo/database';");
  expect(lines).toContain("  users: prismaTable(() => database, 'user', {");
  expect(lines).toContain("  tenants: prismaTable(() => database, 'team', {");
  const plan = lines.findIndex((line) => line.includes('found.plan')) + 1;
  expect(printed).toEqual([
    'Not linked: subscription, which has clerkId too.',
    'Not linked: teammate, which has clerkId too.',
    'Wrote /lib/identity.ts',
    `Correct /lib/identity.ts:${plan}: Property 'plan' does not exist on type 'User'.`,
    'Next: npx clerk-identity-link doctor',
  ]);
});

test('With Drizzle, init takes the tables and the default export of the database, and an id without a default as that of Clerk', async () => {
  const folder = temporaryFolder();
  await writeApplication(folder, '', DRIZZLE);
  const { printed, lines } = runInit(folder, 'src/lib/identity.ts');
  expect(lines).toContain("import db from '../db/index';");
  expect(lines).toContain("import { accounts } from '../db/schema';");
  expect(lines).toContain('  users: drizzleTable(() => db, accounts, {');
  expect(lines).toContain("    clerkId: 'id',");
  expect(printed).toEqual(['Wrote /src/lib/identity.ts', 'Next: npx clerk-identity-link doctor']);
});

test('Without a TypeScript that has a JavaScript API, the commands name the package to install', () => {
  expect(() => loadTypeScript('.')).toThrow('@typescript/typescript6@6.0.2');
});
