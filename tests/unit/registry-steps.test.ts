import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { findSteps, MATCHER } from '../../registry/steps';

type Files = Readonly<Record<string, string>>;

/** Returns the steps for an application with these files, one text for each step. */
function stepsFor(files: Files, application = '.'): string[] {
  const root = mkdtempSync(path.join(os.tmpdir(), 'identity-link-steps-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    writeFileSync(path.join(root, file), text);
  }
  return findSteps(path.join(root, application)).map(({ places, lines }) => [...places, ...lines].join('\n'));
}

const SCHEMA = `model User {
  id      Int     @id @default(autoincrement())
  email   String  @unique
  clerkId String? @unique
}

model Organization {
  id    Int    @id @default(autoincrement())
  orgId String @unique @map("org_id")
  name  String
}
`;
const CONFIG = `import { prisma } from './prisma';

export const users = () => prisma.user;
export const ID = 'id';
export const CLERK_ID = 'clerkId';
export const otherColumns = async (clerkId: string) => ({ email: clerkId });
export const insert = (row: Row) => users().createManyAndReturn({ data: [row] });
`;
const TENANTS = `
export const tenants = () => prisma.organization;
export const TENANT_ID = 'id';
export const ORGANIZATION_ID = 'orgId';
export const otherTenantColumns = async (id: string) => ({ name: id });
`;
const PROXY = `import { withIdentityLink } from '@/lib/identity-link/middleware';
const isPublicRoute = createRouteMatcher(['/users/v1(.*)']);
export default withIdentityLink();
${MATCHER.join('\n').replace('<start of each guarded path>', 'users/v1')}
`;
const ITEMS = 'lib/identity-link';

/** An application with nothing left to do. */
const DONE: Files = {
  'prisma/schema.prisma': SCHEMA,
  'lib/identity-link.config.ts': CONFIG + TENANTS,
  [`${ITEMS}/linking/links.ts`]: "import * as config from '../../identity-link.config';\n",
  [`${ITEMS}/guard.ts`]: '',
  [`${ITEMS}/guard-tenant.ts`]: '',
  'proxy.ts': PROXY,
  'app/users/v1/[name]/route.ts': "import { guard } from '@/lib/identity-link/guard';\n",
  'biome.json': '{ "files": { "includes": ["**", "!**/lib/identity-link"] } }\n',
};
const configWith = (from: string, to: string) => ({
  'lib/identity-link.config.ts': (CONFIG + TENANTS).replace(from, to),
});
const inserting = (code: string) => ({ 'lib/sync.ts': `// prisma.user.create()\n${code}` });
const OLD_MATCHER = "export const config = { matcher: ['/((?!_next|.*\\\\..*).*)', '/(api|trpc)(.*)'] };\n";

test('The first part of the doctor has no step for an application with nothing left to do', () => {
  expect(stepsFor(DONE)).toEqual([]);
});

const STEPS: Readonly<Record<string, readonly [files: Files, place: string, remedy: string]>> = {
  'edits of an earlier version': [
    { [`${ITEMS}/linking/links.ts`]: "import { db } from '../../db';\n", [`${ITEMS}/log.ts`]: '' },
    `${ITEMS}/linking/links.ts\n${ITEMS}/log.ts`,
    'move what you wrote to lib/identity-link.config.ts',
  ],
  'a file that no item has any more': [{ [`${ITEMS}/user-id.ts`]: '' }, `${ITEMS}/user-id.ts`, 'remove'],
  'the register route of an earlier version': [
    { 'app/auth/v1/register/route.ts': 'export const POST = guard();\n' },
    'app/auth/v1/register/route.ts',
    'reads the internal id',
  ],
  'a matcher that leaves out a guarded path': [
    { 'proxy.ts': `withIdentityLink();\n${OLD_MATCHER}` },
    'proxy.ts:2 (/users/v1/a.css)\nproxy.ts:2 (/__clerk/a.js)',
    "'/__clerk/(.*)'",
  ],
  'public routes without a guarded path': [
    { 'proxy.ts': PROXY.replace('/users/v1(.*)', '/api(.*)') },
    'proxy.ts:2 (/users/v1/a.css)',
    'Guarded paths are public routes',
  ],
  'a session file without withIdentityLink': [
    { 'proxy.ts': 'export default clerkMiddleware();\n' },
    'proxy.ts:1',
    'in place of clerkMiddleware',
  ],
  'a linter that would change the items': [{ 'biome.json': '{}\n' }, 'biome.json', '"!**/lib/identity-link"'],
  'a configuration without its model': [
    configWith('prisma.user;', 'prisma.identityLink;'),
    'lib/identity-link.config.ts:3',
    'export const users = () => prisma.user;',
  ],
  "Clerk's id as the internal id": [
    configWith("ID = 'id'", "ID = 'clerkId'"),
    'lib/identity-link.config.ts:3\nprisma/schema.prisma:1',
    "export const ID = 'id';",
  ],
  'a required column that otherColumns leaves out': [
    configWith('({ email: clerkId })', '({})'),
    'lib/identity-link.config.ts:3',
    "? found.primaryEmailAddress.emailAddress : clerkId + '@example.invalid'",
  ],
  'a package that only Next.js can load': [
    configWith('({ email: clerkId })', "({ email: (await import('@clerk/nextjs/server')).email })"),
    'lib/identity-link.config.ts:3',
    'const { createClerkClient } = await import("@clerk/backend");',
  ],
  'a misspelled column of organizations': [
    configWith("ORGANIZATION_ID = 'orgId'", "ORGANIZATION_ID = 'orgIdd'"),
    'lib/identity-link.config.ts:9\nprisma/schema.prisma:7',
    'ORGANIZATION_ID is not a unique column of Organization.',
  ],
  'a required column that otherTenantColumns leaves out': [
    configWith('({ name: id })', '({})'),
    'lib/identity-link.config.ts:9',
    'otherTenantColumns does not fill name',
  ],
  'a column without a migration': [
    { 'prisma/migrations/1/migration.sql': 'CREATE TABLE "User" ("clerkId" TEXT);\n' },
    'prisma/schema.prisma:7',
    'No migration creates the column orgId',
  ],
  'an insert': [
    inserting('await prisma.user.create({ data: { clerkId: id } });\n'),
    'lib/sync.ts:2: call registerByIdentityProviderUserId',
    'which returns the internal id',
  ],
  'an insert of a row in a variable': [
    inserting('await prisma.user.create({ data: row });\n'),
    'lib/sync.ts:2: call registerByIdentityProviderUserId',
    'which returns the internal id',
  ],
  'an insert of an organization': [
    inserting("if (type === 'organization.created') tx.organization\n  .upsert({ where: { orgId } });\n"),
    'lib/sync.ts:2: before it, call register(',
    'make it an update',
  ],
  'rows before the sign-up that insert does not take over': [
    inserting('await prisma.user.create({ data: { clerkId: "pending_1", email } });\n'),
    'lib/sync.ts:2',
    "email: { in: [row.email], mode: 'insensitive' as const }, clerkId: null",
  ],
  'a webhook that does not register the user': [
    {
      'app/api/webhooks/route.ts': "if (event.type === 'user.created') welcome();\n",
      'app/auth/v1/register/route.ts': '// 201, 409\nregisterByIdentityProviderUserId(id);\n',
    },
    'app/api/webhooks/route.ts:1',
    'call registerByIdentityProviderUserId',
  ],
};

test.each(Object.entries(STEPS))(
  'The first part of the doctor names the file and the line of %s, and what to do',
  (_, [files, place, remedy]) => {
    const steps = stepsFor({ ...DONE, ...files });
    expect(steps).toHaveLength(1);
    expect(steps[0]).toContain(place);
    expect(steps[0]).toContain(remedy);
  },
);

test('In a monorepo, the first part of the doctor names the session file and its wrapper in a package, not another application', () => {
  const text = 'export default clerkMiddleware();\n';
  const files = { 'apps/app/proxy.ts': text, 'apps/web/proxy.ts': text, 'packages/auth/wrapper.ts': text };
  const guard = { 'pnpm-workspace.yaml': '', [`apps/app/${ITEMS}/guard.ts`]: '' };
  const [, session] = stepsFor({ ...files, ...guard }, 'apps/app');
  expect(session?.split('\n').slice(0, 4)).toEqual([
    'proxy.ts',
    'proxy.ts:1',
    '../../packages/auth/wrapper.ts:1',
    'The session file does not use withIdentityLink of lib/identity-link/middleware.',
  ]);
});

test('The first part of the doctor reads the patterns of a matcher with parameters', () => {
  const proxy = PROXY.replace("'/(api|trpc|users/v1)(.*)'", "'/users/:path+'");
  expect(stepsFor({ ...DONE, 'proxy.ts': proxy })).toEqual([]);
});

test('The first part of the doctor has no step for a line with a reason, for a test, and for public routes in a variable', () => {
  const code = 'await prisma.user.create({ data: { clerkId: id } });\n';
  const files = {
    'lib/import.ts': `// identity-link: imports rows\n${code}`,
    'lib/sync.test.ts': code,
    'proxy.ts': PROXY.replace("['/users/v1(.*)']", 'publicRoutes'),
  };
  expect(stepsFor({ ...DONE, ...files })).toEqual([]);
});

test('In a monorepo, the first part of the doctor reads the schema and the configuration of the database package', () => {
  const application = { [`apps/app/${ITEMS}/register.ts`]: '' };
  const files = { 'pnpm-workspace.yaml': '', 'packages/db/prisma/schema.prisma': SCHEMA, ...application };
  const [missing] = stepsFor(files, 'apps/app');
  expect(missing).toMatch(/^\.\.\/\.\.\/packages\/db\/identity-link\.ts\n/);
  const configured = { ...files, 'packages/db/identity-link.ts': CONFIG };
  expect(stepsFor(configured, 'apps/app')).toEqual([
    expect.stringMatching(/^lib\/identity-link\.config\.ts\n/),
  ]);
  const link = "export * from '@repo/db/identity-link';\n";
  expect(stepsFor({ ...configured, 'apps/app/lib/identity-link.config.ts': link }, 'apps/app')).toEqual([]);
});
