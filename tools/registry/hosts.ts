import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';

/** An application in which `npm run registry:test` installs the shadcn items of docs/existing-app.md. */
export interface Host {
  readonly name: string;
  /** Folder of `app/` and `lib/`: `src/` or the root. */
  readonly root: 'src/' | '';
  readonly middleware: 'proxy.ts' | 'middleware.ts';
  /** Prefix of imports from the root. */
  readonly alias: '@/' | '~/';
  /** Module that exports the Prisma client, relative to the root. */
  readonly client: string;
  readonly config: string;
  readonly models: string;
  /** SQL that creates the tables of `models` and, if it is installed, of the item's model. */
  readonly sql: string;
  /** Parameters of DATABASE_URL, and the code that passes its schema to the adapter. */
  readonly schema?: 'app';
  /** The handler of the middleware. */
  readonly handler: string;
  /** Changes of lib/identity-link/linking/links.ts for the application's own table. */
  readonly links: ReadonlyArray<readonly [from: string, to: string]>;
  /** Columns of the link: the table, the id, Clerk's id, and an insert whose only parameter is Clerk's id. */
  readonly table: {
    readonly name: string;
    readonly id: string;
    readonly user: string;
    readonly insert: string;
  };
}

const USER = 'model User {\n  id    Int    @id @default(autoincrement())\n  email String @unique\n';

export const HOSTS: readonly Host[] = [
  {
    name: 'own_table',
    root: 'src/',
    middleware: 'proxy.ts',
    alias: '~/',
    client: 'db/client',
    config: 'export default { trailingSlash: true };\n',
    models: `${USER}  clerkId String? @unique\n}\n`,
    sql: 'CREATE TABLE "User" (id SERIAL PRIMARY KEY, email TEXT NOT NULL UNIQUE, "clerkId" TEXT UNIQUE)',
    handler: `(_auth, request) => {
  if (/^\\/(?:en|users|me|notes)\\//.test(request.nextUrl.pathname)) return undefined;
  return NextResponse.redirect(new URL('/en' + request.nextUrl.pathname, request.url));
}`,
    links: [
      ["from '../../prisma'", "from '~/db/client'"],
      ['prisma.identityLink', 'prisma.user'],
      ["'userId'", "'id'"],
      ["'identityProviderUserId'", "'clerkId'"],
      [
        'async (_clerkUserId: string) => ({})',
        "async (clerkUserId: string) => ({ email: clerkUserId + '@example.com' })",
      ],
    ],
    table: {
      name: '"User"',
      id: 'id',
      user: '"clerkId"',
      insert: `INSERT INTO "User" ("clerkId", email) VALUES ($1, $1 || '@example.com')`,
    },
  },
  {
    name: 'own_model',
    root: '',
    middleware: 'middleware.ts',
    alias: '@/',
    client: 'lib/prisma',
    config: 'export default {};\n',
    models: `${USER}}\n`,
    sql: `CREATE SCHEMA app;
      CREATE TABLE app."User" (id SERIAL PRIMARY KEY, email TEXT NOT NULL UNIQUE);
      CREATE TABLE app.identity_links (user_id UUID PRIMARY KEY, identity_provider_user_id VARCHAR(255) NOT NULL UNIQUE)`,
    schema: 'app',
    handler: `async (auth, request) => {
  if (!/^\\/(?:users\\/.*|me|notes)?$/.test(request.nextUrl.pathname)) await auth.protect();
}`,
    links: [],
    table: {
      name: 'app.identity_links',
      id: 'user_id',
      user: 'identity_provider_user_id',
      insert:
        'INSERT INTO app.identity_links (user_id, identity_provider_user_id) VALUES (gen_random_uuid(), $1)',
    },
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
  '@clerk/nextjs @prisma/adapter-pg @prisma/client @types/node @types/react @types/react-dom next prisma react react-dom svix typescript zod'.split(
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

/** Creates the files of an application with Clerk and Prisma, as it is before the installation. */
export function createHost(folder: string, host: Host): void {
  const { root, alias, client, schema } = host;
  const files: Record<string, string> = {
    'package.json': json({
      name: 'host',
      private: true,
      dependencies: Object.fromEntries(PACKAGES.map((name) => [name, VERSIONS[name]])),
    }),
    'tsconfig.json': json({
      compilerOptions: { ...COMPILER_OPTIONS, paths: { [`${alias}*`]: [`./${root}*`] } },
      include: ['next-env.d.ts', '**/*.ts', '**/*.tsx', '.next/types/**/*.ts'],
      exclude: ['node_modules'],
    }),
    'next.config.mjs': host.config,
    'public/logo.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>\n',
    'prisma.config.ts': `import { defineConfig } from 'prisma/config';

export default defineConfig({ schema: 'prisma/schema.prisma' });
`,
    'prisma/schema.prisma': `generator client {
  provider = "prisma-client"
  output   = "../${root}generated/prisma"
}

datasource db {
  provider = "postgresql"
}

${host.models}`,
    [`${root}${client}.ts`]: `import 'server-only';
import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '${alias}generated/prisma/client';

const connection = { connectionString: process.env.DATABASE_URL };
export const prisma = new PrismaClient({ adapter: new PrismaPg(connection${schema ? `, { schema: '${schema}' }` : ''}) });
`,
    [`${root}app/layout.tsx`]: `export default function Layout({ children }: { children: React.ReactNode }) {
  return <html lang="en"><body>{children}</body></html>;
}
`,
    [`${root}app/page.tsx`]: `export default function Page() {
  return <p>host</p>;
}
`,
  };
  for (const [file, text] of Object.entries(files)) write(folder, file, text);
}

const GUIDE = readFileSync('docs/existing-app.md', 'utf8');

/** Returns the commands of a section of the guide. */
export const guideCommands = (section: string): string[] => {
  const [, text = ''] = new RegExp(`^## ${section}\n(.*?)(?=^## |$(?![\\s\\S]))`, 'ms').exec(GUIDE) ?? [];
  const commands = [...text.matchAll(/^ *```sh\n(.*?)^ *```$/gms)].flatMap(([, lines = '']) =>
    lines
      .split('\n')
      .map((command) => command.trim())
      .filter(Boolean),
  );
  if (commands.length === 0) throw new Error(`The guide has no commands in the section ${section}.`);
  return commands;
};

/** A form for the server action of the guide. */
const FORM = `'use client';
import { useActionState } from 'react';
import { createNote } from './actions';

export default function Page() {
  const [result, action] = useActionState(createNote, undefined);
  return <form action={action}><input name="text" /><output>{JSON.stringify(result)}</output></form>;
}
`;

/** Makes the manual edits of docs/existing-app.md, and writes the files that the guide shows, and a form. */
export function editHost(folder: string, host: Host): void {
  const { root, middleware, alias, handler } = host;
  for (const [, indent = '', file = '', code = ''] of GUIDE.matchAll(
    /^( *)```tsx?\n *\/\/ (\S+)\n(.*?)^ *```$/gms,
  )) {
    const text = code
      .replaceAll(new RegExp(`^${indent}`, 'gm'), '')
      .replaceAll("'@/", `'${alias}`)
      .replace('withIdentityLink()', () => `withIdentityLink(${handler})`);
    const imports = file === 'proxy.ts' ? "import { NextResponse } from 'next/server';\n" : '';
    write(folder, root + file.replace('proxy.ts', middleware), imports + text);
  }
  write(folder, `${root}app/notes/page.tsx`, FORM);
  const links = path.join(folder, root, 'lib/identity-link/linking/links.ts');
  const edited = host.links.reduce((text, [from, to]) => text.replace(from, to), readFileSync(links, 'utf8'));
  writeFileSync(links, edited);
}
