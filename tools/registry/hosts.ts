import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { HOOK } from '../../tests/harness/requests';
import { linkFiles } from '../temporary-project';
import { type Checks, GUARD, OWN_MODEL, OWN_TABLE, type Table, WEBHOOK } from './checks';

/** An application in which `npm run registry:test` installs the shadcn items of docs/existing-app.md. */
export interface Application {
  /** Folder of the application, relative to the host. */
  readonly folder: '.' | 'apps/app' | 'apps/api';
  /** Folder of `app/` and `lib/`: `src/` or the root. */
  readonly root: 'src/' | '';
  /** Prefix of imports from the root. */
  readonly alias: '@/' | '~/';
  /** Items of the guide's commands that this application leaves out. */
  readonly leavesOut?: '-guard' | '-webhook';
  /** Items that it installs in addition. */
  readonly adds?: '-register';
  readonly config: string;
  readonly middleware?: 'proxy.ts' | 'middleware.ts';
  /** Arguments of `withIdentityLink`. */
  readonly arguments?: string;
  /** Path of the route for `user.created`. */
  readonly webhook?: string;
  /** The checks that the doctor does not try, because another application or a route of the host receives webhooks. */
  readonly notTried: number;
}

/** A repository with one or two applications and a database. */
export interface Host {
  readonly name: string;
  readonly applications: readonly Application[];
  /** Folder of the Prisma schema, relative to the host. */
  readonly database: '.' | 'packages/database';
  /** File that exports the Prisma client, and how the configuration of the item imports it. */
  readonly client: string;
  readonly importOfClient: string;
  readonly models: string;
  /** SQL that creates the tables of `models` and, if it is installed, of the item's model. */
  readonly sql: string;
  /** Parameters of DATABASE_URL, and the code that passes its schema to the adapter. */
  readonly schema?: 'app';
  readonly table: Table;
  readonly checks: readonly Checks[];
}

const USER = 'model User {\n  id    Int    @id @default(autoincrement())\n  email String @unique\n';
const LINKS =
  'identity_links (user_id UUID PRIMARY KEY, identity_provider_user_id VARCHAR(255) NOT NULL UNIQUE)';
const tableOfItem = (name: string): Table => ({
  name,
  id: 'user_id',
  user: 'identity_provider_user_id',
  insert: `INSERT INTO ${name} (user_id, identity_provider_user_id) VALUES (gen_random_uuid(), $1)`,
  needsClerkUser: false,
});
/** Configuration of an application that uses packages of its monorepo. */
const WORKSPACE = `import path from 'node:path';

export default { transpilePackages: ['@repo/database'], turbopack: { root: path.resolve('../..') } };
`;

export const HOSTS: readonly Host[] = [
  {
    name: 'own_table',
    applications: [
      {
        folder: '.',
        root: 'src/',
        alias: '~/',
        leavesOut: '-webhook',
        config: 'export default { trailingSlash: true, cacheComponents: true };\n',
        middleware: 'proxy.ts',
        arguments: `(_auth, request) => {
  if (/^\\/(?:en|users|me|notes|api)\\//.test(request.nextUrl.pathname)) return undefined;
  return NextResponse.redirect(new URL('/en' + request.nextUrl.pathname, request.url));
}, async () => ({ frontendApiProxy: { enabled: true } })`,
        webhook: '/api/webhooks/clerk',
        notTried: 1,
      },
    ],
    database: '.',
    client: 'src/lib/prisma.ts',
    importOfClient: "import { prisma } from './prisma'",
    models: `${USER}  clerkId String? @unique\n}\nmodel Trial {\n  userId Int @id\n}\n`,
    sql: `CREATE TABLE "User" (id SERIAL PRIMARY KEY, email TEXT NOT NULL UNIQUE, "clerkId" TEXT UNIQUE);
      CREATE TABLE "Trial" ("userId" INT PRIMARY KEY)`,
    table: {
      name: '"User"',
      id: 'id',
      user: '"clerkId"',
      insert: `INSERT INTO "User" ("clerkId", email) VALUES ($1, $1 || '@example.com')`,
      needsClerkUser: true,
    },
    checks: [GUARD, OWN_TABLE],
  },
  {
    name: 'own_model',
    applications: [
      {
        folder: '.',
        root: '',
        alias: '@/',
        adds: '-register',
        config: 'export default {};\n',
        middleware: 'middleware.ts',
        arguments: `async (auth, request) => {
  if (!/^\\/(?:users\\/.*|me|notes)?$/.test(request.nextUrl.pathname)) await auth.protect();
}`,
        webhook: HOOK,
        notTried: 0,
      },
    ],
    database: '.',
    client: 'db/client.ts',
    importOfClient: "import { prisma } from '../db/client'",
    models: `${USER}}\n`,
    sql: `CREATE SCHEMA app; CREATE TABLE app.${LINKS};
      CREATE TABLE app."User" (id SERIAL PRIMARY KEY, email TEXT NOT NULL UNIQUE)`,
    schema: 'app',
    table: tableOfItem('app.identity_links'),
    checks: [GUARD, WEBHOOK, OWN_MODEL],
  },
  {
    name: 'monorepo',
    applications: [
      {
        folder: 'apps/app',
        root: '',
        alias: '@/',
        leavesOut: '-webhook',
        config: WORKSPACE,
        middleware: 'proxy.ts',
        arguments: "{ signInUrl: '/my-sign-in' }",
        notTried: 2,
      },
      {
        folder: 'apps/api',
        root: '',
        alias: '@/',
        leavesOut: '-guard',
        config: WORKSPACE,
        webhook: HOOK,
        notTried: 0,
      },
    ],
    database: 'packages/database',
    client: 'packages/database/index.ts',
    importOfClient: "import { database as prisma } from './index'",
    models: '',
    sql: `CREATE TABLE ${LINKS}`,
    table: tableOfItem('identity_links'),
    checks: [GUARD, WEBHOOK],
  },
];

const VERSIONS = z
  .object({
    dependencies: z.record(z.string(), z.string()),
    devDependencies: z.record(z.string(), z.string()),
  })
  .transform(({ dependencies, devDependencies }) => ({ ...devDependencies, ...dependencies }))
  .parse(JSON.parse(readFileSync('package.json', 'utf8')));

/** Packages of an application. If package.json already lists `svix`, shadcn does not run npm, which would download packages. */
const PACKAGES =
  '@clerk/backend @clerk/nextjs @prisma/adapter-pg @prisma/client @types/node @types/react @types/react-dom next prisma react react-dom svix typescript zod'.split(
    ' ',
  );

/** Compiler options of `create-next-app`, with the older library of other applications. */
const COMPILER_OPTIONS = {
  target: 'ES2017',
  lib: ['dom', 'dom.iterable', 'es2022'],
  allowJs: true,
  skipLibCheck: true,
  strict: true,
  noEmit: true,
  esModuleInterop: true,
  module: 'esnext',
  moduleResolution: 'bundler',
  resolveJsonModule: true,
  isolatedModules: true,
  jsx: 'react-jsx',
  incremental: true,
  plugins: [{ name: 'next' }],
};

const json = (value: object) => `${JSON.stringify(value, null, 2)}\n`;

/** Writes a file and its folders. */
function write(folder: string, file: string, text: string): void {
  const target = path.join(folder, file);
  mkdirSync(path.dirname(target), { recursive: true });
  writeFileSync(target, text);
}

const manifest = (name: string, more: object = {}) =>
  json({
    name,
    private: true,
    dependencies: Object.fromEntries(PACKAGES.map((each) => [each, VERSIONS[each]])),
    ...more,
  });

function applicationFiles({ folder, root, alias, config }: Application): Record<string, string> {
  return {
    'package.json': manifest(path.basename(path.resolve('host', folder))),
    'tsconfig.json': json({
      compilerOptions: { ...COMPILER_OPTIONS, paths: { [`${alias}*`]: [`./${root}*`] } },
      include: ['next-env.d.ts', '**/*.ts', '**/*.tsx', '.next/types/**/*.ts'],
      exclude: ['node_modules'],
    }),
    'next.config.mjs': config,
    'public/logo.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>\n',
    [`${root}app/layout.tsx`]: `export default function Layout({ children }: { children: React.ReactNode }) {
  return <html lang="en"><body>{children}</body></html>;
}
`,
    [`${root}app/page.tsx`]: `export default function Page() {
  return <p>host</p>;
}
`,
  };
}

/** Creates the files of a host with Clerk and Prisma, as they are before the installation. */
export function createHost(folder: string, host: Host): void {
  const { applications, database, client, schema } = host;
  for (const application of applications)
    for (const [file, text] of Object.entries(applicationFiles(application)))
      write(path.join(folder, application.folder), file, text);
  linkFiles('node_modules', path.join(folder, 'node_modules'));
  const isMonorepo = database !== '.';
  if (isMonorepo) {
    write(folder, 'package.json', manifest('monorepo', { workspaces: ['apps/*', 'packages/*'] }));
    write(folder, `${database}/package.json`, manifest('@repo/database'));
    mkdirSync(path.join(folder, 'node_modules/@repo'));
    symlinkSync(path.join(folder, database), path.join(folder, 'node_modules/@repo/database'));
  }
  const generated = path.posix.relative(path.dirname(client), path.posix.join(database, 'generated/prisma'));
  const connection = '{ connectionString: process.env.DATABASE_URL }';
  const files: Record<string, string> = {
    '.gitignore': 'node_modules\n.next\ngenerated\nnext-env.d.ts\n',
    [`${database}/prisma.config.ts`]: `import { defineConfig } from 'prisma/config';

export default defineConfig({ schema: 'prisma/schema.prisma' });
`,
    [`${database}/prisma/schema.prisma`]: `generator client {
  provider = "prisma-client"
  output   = "../generated/prisma"
}

datasource db {
  provider = "postgresql"
}

${host.models}`,
    [client]: `import 'server-only';
import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '${generated.startsWith('.') ? '' : './'}${generated}/client';

export const ${isMonorepo ? 'database' : 'prisma'} = new PrismaClient({
  adapter: new PrismaPg(${connection}${schema ? `, { schema: '${schema}' }` : ''}),
});
`,
  };
  for (const [file, text] of Object.entries(files)) write(folder, file, text);
}

const GUIDE = readFileSync('docs/existing-app.md', 'utf8');

/** Returns the blocks of commands of a section of the guide. */
export function guideBlocks(section: string): string[][] {
  const [, text = ''] = new RegExp(`^## ${section}\n(.*?)(?=^## |$(?![\\s\\S]))`, 'ms').exec(GUIDE) ?? [];
  const blocks = [...text.matchAll(/^ *```sh\n(.*?)\n *```$/gms)].map(([, lines = '']) =>
    lines.split(/(?<!&&)\n/).map((command) => command.trim()),
  );
  if (blocks.length === 0) throw new Error(`The guide has no commands in the section ${section}.`);
  return blocks;
}

/** A form for the server action of the guide. */
const FORM = `'use client';
import { useActionState } from 'react';
import { createNote } from './actions';

export default function Page() {
  const [result, action] = useActionState(createNote, undefined);
  return <form action={action}><input name="text" /><output>{JSON.stringify(result)}</output></form>;
}
`;

/** A route of the host for `user.created`. */
const WEBHOOK_ROUTE = `import { verifyWebhook } from '@clerk/nextjs/webhooks';
import type { NextRequest } from 'next/server';
import { registerByIdentityProviderUserId } from '~/lib/identity-link/register';

export async function POST(request: NextRequest) {
  const event = await verifyWebhook(request).catch(() => undefined);
  if (event?.type === 'user.created') await registerByIdentityProviderUserId(event.data.id);
  return Response.json({}, { status: event ? 200 : 400 });
}
`;

/** Makes the manual edits of docs/existing-app.md, and writes the files that the guide shows, and a form. */
export function editApplication(folder: string, application: Application, host: Host): void {
  const { root, alias, middleware, webhook = HOOK, config } = application;
  if (middleware === undefined) return;
  for (const [, indent = '', file = '', code = ''] of GUIDE.matchAll(
    /^( *)```tsx?\n *\/\/ (\S+)\n(.*?)^ *```$/gms,
  )) {
    if (file.startsWith('lib/') && !host.table.needsClerkUser) continue;
    const text = code
      .replaceAll(new RegExp(`^${indent}`, 'gm'), '')
      .replaceAll("'@/", `'${alias}`)
      .replace('withIdentityLink()', () => `withIdentityLink(${application.arguments})`);
    const imports = file === 'proxy.ts' ? "import { NextResponse } from 'next/server';\n" : '';
    write(folder, root + file.replace('proxy.ts', middleware), imports + text);
  }
  write(folder, `${root}app/notes/page.tsx`, FORM);
  const me = readFileSync(path.join(folder, root, 'app/users/v1/me/route.ts'), 'utf8');
  write(folder, `${root}app/users/v1/[name]/route.ts`, me);
  if (webhook !== HOOK) write(folder, `${root}app${webhook}/route.ts`, WEBHOOK_ROUTE);
  if (!config.includes('cacheComponents')) return;
  const page = readFileSync(path.join(folder, root, 'app/me/page.tsx'), 'utf8');
  const underSuspense = `import { Suspense } from 'react';
${page.replace('export default async function Page', 'async function Me')}
export default function Page() {
  return <Suspense><Me /></Suspense>;
}
`;
  write(folder, `${root}app/me/page.tsx`, underSuspense);
}

/** Makes the configuration of the item import the Prisma client of the host. */
export function editConfiguration(file: string, { importOfClient }: Host): void {
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, text.replace("import { prisma } from './prisma'", importOfClient));
}
