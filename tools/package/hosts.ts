/** An application in which `npm run hosts` installs the package clerk-identity-link. All have the same tables. */
export interface Host {
  readonly name: string;
  /** Folder of the application in the repository. */
  readonly application: '.' | 'apps/web';
  /** Folder of the Prisma schema or the Drizzle tables. */
  readonly database: '.' | 'packages/database';
  /** Folder of `app/` and `lib/`. */
  readonly source: 'src/' | '';
  readonly isBuilt: boolean;
  /** Dependencies besides those that this checkout has. */
  readonly dependencies: Readonly<Record<string, string>>;
  /** Files by their path in the repository. */
  readonly files: Readonly<Record<string, string>>;
  /** Path of the module that names the tables. */
  readonly tables: string;
  /** Code that goes past the link in the second line. */
  readonly past: string;
}

export const TABLES = `
  CREATE TABLE "User" (id SERIAL PRIMARY KEY, email TEXT NOT NULL UNIQUE, name TEXT, "clerkId" TEXT UNIQUE);
  CREATE TABLE "Trial" ("userId" INT PRIMARY KEY REFERENCES "User");
  CREATE TABLE "Organization" (id SERIAL PRIMARY KEY, "clerkId" TEXT NOT NULL UNIQUE, name TEXT NOT NULL)`;

const schemaOf = (generator: string, url = '') => `generator client {
  ${generator}
}

datasource db {
  provider = "postgresql"
  ${url}
}
model User {
  id      Int     @id @default(autoincrement())
  email   String  @unique
  name    String?
  clerkId String? @unique
  trial   Trial?
}

model Trial {
  userId Int  @id
  user   User @relation(fields: [userId], references: [id])
}

model Organization {
  id      Int    @id @default(autoincrement())
  clerkId String @unique
  name    String
}
`;
const clientOf = (module: string) => `import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '${module}';

const adapter = new PrismaPg({ connectionString: process.env['DATABASE_URL'] });
export const prisma = new PrismaClient({ adapter })`;

/** The files of Prisma 7 with the generated client in a folder. */
const prisma7 = (folder: string, client: string) => {
  const generated = `${'../'.repeat(client.split('/').length - 1) || './'}generated/prisma/client`;
  const schema = schemaOf('provider = "prisma-client"\n  output = "../generated/prisma"');
  return {
    [`${folder}prisma.config.ts`]: "export default { schema: 'prisma/schema.prisma' };\n",
    [`${folder}prisma/schema.prisma`]: schema.replaceAll('\n', '\r\n'),
    [folder + client]: `import 'server-only';\n${clientOf(generated)}.$extends({ name: 'own' });\n`,
  };
};

const tables = (prefix: string, users: string, organizations: string, insertTrial: string) => `{
  users: ${prefix}, ${users}, {
    id: 'id',
    clerkId: 'clerkId',
    columns: async (user, { verifiedEmail }) => ({ email: verifiedEmail ?? '', name: user.fullName }),
    claim: 'email',
    onInsert: (id, transaction) => transaction.${insertTrial},
    onCreated: async (id) => console.log('created', id),
  }),
  tenants: ${prefix}, ${organizations}, { kind: 'tenant', id: 'id', clerkId: 'clerkId', columns: ({ name }) => ({ name }) }),
}`;
const PRISMA_TABLES = tables(
  'prismaTable(() => prisma',
  "'user'",
  "'organization'",
  'trial.create({ data: { userId: Number(id) } })',
);
const DRIZZLE_TABLES = tables(
  'drizzleTable(() => db',
  'users',
  'organizations',
  'insert(trials).values({ userId: Number(id) })',
);
const NAMES =
  'guard, guardTenant, guardAction, getActor, getTenant, getUser, requireUser, register, registerTenant, webhook';
const nextLink = (imports: string, argument: string) => `${imports}
import { nextLink } from 'clerk-identity-link/next';

export const { ${NAMES} } = nextLink(${argument});
`;
const OF_PRISMA = `import { prismaTable } from 'clerk-identity-link/prisma';\nimport { prisma } from './prisma';`;

/** Wrong lines of the module that names the tables. */
export const WRONG = [
  ["id: 'id'", "id: 'uid'"],
  ["clerkId: 'clerkId'", "clerkId: 'clerk'"],
  ['name: user.fullName', 'nickname: user.fullName'],
  ['name: user.fullName', 'name: user.createdAt'],
  ["claim: 'email'", "claim: 'id'"],
  ["'organization'", "'organisation'"], // Prisma
] as const;

/** Code that goes past the link in the second line. */
const pastOf = (module: string, insert: string) => `import * as database from '${module}';
export const past = (clerkId: string) => ${insert};
`;
const PRISMA_INSERT = "database.prisma.user.create({ data: { email: '', clerkId } })";

const PRISMA_6 = '6.19.3';

const OF_ALL = {
  application: '.',
  database: '.',
  source: '',
  isBuilt: false,
  dependencies: {},
  tables: 'lib/identity.ts',
  past: pastOf('./prisma', PRISMA_INSERT),
} as const;

export const HOSTS: readonly Host[] = [
  {
    ...OF_ALL,
    name: 'Prisma 7',
    source: 'src/',
    isBuilt: true,
    files: {
      ...prisma7('', 'src/lib/prisma.ts'),
      'src/lib/identity.ts': nextLink(OF_PRISMA, PRISMA_TABLES),
    },
    tables: 'src/lib/identity.ts',
  },
  {
    ...OF_ALL,
    name: 'Prisma 6, Next.js 15 and Clerk 6',
    dependencies: {
      '@clerk/nextjs': '6.39.8',
      '@prisma/adapter-pg': PRISMA_6,
      '@prisma/client': PRISMA_6,
      next: '15.5.29',
      prisma: PRISMA_6,
    },
    files: {
      'prisma/schema.prisma': schemaOf(
        'provider = "prisma-client-js"\n  engineType = "client"',
        'url = env("DATABASE_URL")',
      ).replace('clerkId String?', 'clerkId String'),
      'lib/prisma.ts': `${clientOf('@prisma/client')};\n`,
      'lib/identity.ts': nextLink(OF_PRISMA, PRISMA_TABLES),
    },
  },
  {
    ...OF_ALL,
    name: 'Drizzle',
    files: {
      'lib/db.ts': `import { drizzle } from 'drizzle-orm/node-postgres';
import { integer, pgTable, serial, text } from 'drizzle-orm/pg-core';

export const users = pgTable('User', {
  id: serial().primaryKey(),
  email: text().notNull().unique(),
  name: text(),
  clerkId: text().unique(),
});
export const trials = pgTable('Trial', { userId: integer().primaryKey() });
export const organizations = pgTable('Organization', {
  id: serial().primaryKey(),
  clerkId: text().notNull().unique(),
  name: text().notNull(),
});
export const db = drizzle(process.env['DATABASE_URL'] ?? '', { schema: { users, trials, organizations } });
`,
      'lib/identity.ts': nextLink(
        `import { drizzleTable } from 'clerk-identity-link/drizzle';
import { db, organizations, trials, users } from './db';`,
        DRIZZLE_TABLES,
      ),
    },
    past: pastOf('./db', "database.db.insert(database.users).values({ email: '', clerkId })"),
  },
  {
    ...OF_ALL,
    name: 'a monorepo of pnpm',
    application: 'apps/web',
    database: 'packages/database',
    files: {
      ...prisma7('packages/database/', 'index.ts'),
      'packages/database/identity.ts': `import { identityLink } from 'clerk-identity-link';
import { prismaTable } from 'clerk-identity-link/prisma';
import { prisma } from './index';

export const identity = identityLink(${PRISMA_TABLES});
`,
      'apps/web/lib/identity.ts': nextLink(`import { identity } from '@repo/database/identity';`, 'identity'),
    },
    tables: 'packages/database/identity.ts',
    past: pastOf('@repo/database', PRISMA_INSERT),
  },
];
