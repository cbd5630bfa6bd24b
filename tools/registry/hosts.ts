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
  /** Path of the Prisma schema: a folder or a single file. */
  readonly schema: 'prisma' | 'prisma/schema.prisma';
  /** Default isolation level of the database. With `serializable`, a statement that loses a race fails. */
  readonly isolation: 'read committed' | 'serializable';
  readonly typescript: '5.9' | '7';
  /** True if the middleware calls `auth.protect()` for every route except the public routes that it lists. */
  readonly protects: boolean;
  /** The way in which the middleware passes CLERK_JWT_KEY after the installation. */
  readonly passesKeyBy: 'withIdentityLink' | 'jwtKey';
  /** True if the item identity-link-cache is installed. */
  readonly caches: boolean;
}

const SRC = { root: 'src/', client: 'lib/prisma', isolation: 'read committed' } as const;
const ROOT = { root: '', client: 'db/client', isolation: 'serializable' } as const;
const PROXY = { middleware: 'proxy.ts', alias: '@/', protects: false } as const;
const MIDDLEWARE = { middleware: 'middleware.ts', alias: '~/', protects: true } as const;
const FOLDER = { schema: 'prisma', caches: false } as const;
const FILE = { schema: 'prisma/schema.prisma', caches: true } as const;

export const HOSTS: readonly Host[] = [
  { name: 'src', ...SRC, ...PROXY, ...FOLDER, typescript: '7', passesKeyBy: 'withIdentityLink' },
  { name: 'root', ...ROOT, ...MIDDLEWARE, ...FILE, typescript: '7', passesKeyBy: 'jwtKey' },
  { name: 'src_old', ...SRC, ...MIDDLEWARE, ...FILE, typescript: '5.9', passesKeyBy: 'withIdentityLink' },
  { name: 'root_old', ...ROOT, ...PROXY, ...FOLDER, typescript: '5.9', passesKeyBy: 'jwtKey' },
];

const VERSIONS = z
  .object({
    dependencies: z.record(z.string(), z.string()),
    devDependencies: z.record(z.string(), z.string()),
  })
  .transform(({ dependencies, devDependencies }) => ({ ...devDependencies, ...dependencies }))
  .parse(JSON.parse(readFileSync('package.json', 'utf8')));
/** Packages that each application has before the installation. */
export const PACKAGES = [
  '@clerk/nextjs',
  '@prisma/adapter-pg',
  '@prisma/client',
  '@types/node',
  '@types/react',
  '@types/react-dom',
  'next',
  'prisma',
  'react',
  'react-dom',
  'typescript',
  'zod',
];

/**
 * Dependency of the item identity-link-cache. If package.json already lists it, shadcn does not run npm, which would download
 * all packages.
 */
const CACHE_CLIENT = '@vercel/kv';

/** Compiler options of `create-next-app`. */
const COMPILER_OPTIONS = {
  target: 'ES2017',
  lib: ['dom', 'dom.iterable', 'esnext'],
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

const PLAIN = `import { clerkMiddleware } from '@clerk/nextjs/server';

export default clerkMiddleware();
`;
const PROTECTING = `import { clerkMiddleware, createRouteMatcher } from '@clerk/nextjs/server';

const isPublic = createRouteMatcher(['/', '/users/(.*)', '/me', '/notes']);

export default clerkMiddleware(async (auth, request) => {
  if (!isPublic(request)) await auth.protect();
});
`;

/**
 * Returns the text of the middleware file after the manual edits. Used if this text is not in the guide (docs/existing-app.md),
 * which shows only `withIdentityLink()` without arguments. The edits follow the text that shadcn prints (`docs` in build.ts).
 */
function editMiddleware({ protects, passesKeyBy, alias }: Host): string {
  if (passesKeyBy === 'withIdentityLink')
    return `import { withIdentityLink } from '${alias}lib/identity-link/middleware';\n${PROTECTING}`
      .replace('clerkMiddleware, ', '')
      .replace('clerkMiddleware(', 'withIdentityLink(');
  const jwtKey = '{ jwtKey: process.env.CLERK_JWT_KEY });';
  return protects
    ? PROTECTING.replace("'/'", "'/', '/auth/v1/register', '/webhooks/(.*)'").replace(
        /^\}\);/m,
        `}, ${jwtKey}`,
      )
    : PLAIN.replace('clerkMiddleware();', `clerkMiddleware(${jwtKey}`);
}

const json = (value: object) => `${JSON.stringify(value, null, 2)}\n`;

/** Writes a file and its folders. */
export function write(folder: string, file: string, text: string): void {
  const target = path.join(folder, file);
  mkdirSync(path.dirname(target), { recursive: true });
  writeFileSync(target, text);
}

/** Creates the files of an application with Clerk, Prisma and a model User, as it is before the installation. */
export function createHost(folder: string, host: Host): void {
  const { root, middleware, alias, client, schema, caches } = host;
  const packages = caches ? [...PACKAGES, CACHE_CLIENT] : PACKAGES;
  const files: Record<string, string> = {
    'package.json': json({
      name: 'host',
      private: true,
      dependencies: Object.fromEntries(packages.map((name) => [name, VERSIONS[name]])),
    }),
    'tsconfig.json': json({
      compilerOptions: { ...COMPILER_OPTIONS, paths: { [`${alias}*`]: [`./${root}*`] } },
      include: ['next-env.d.ts', '**/*.ts', '**/*.tsx', '.next/types/**/*.ts'],
      exclude: ['node_modules'],
    }),
    'prisma.config.ts': `import { defineConfig } from 'prisma/config';

export default defineConfig({ schema: '${schema}', migrations: { path: 'prisma/migrations' } });
`,
    'prisma/schema.prisma': `generator client {
  provider = "prisma-client"
  output   = "../${root}generated/prisma"
}

datasource db {
  provider = "postgresql"
}

model User {
  id    Int    @id @default(autoincrement())
  email String @unique
}
`,
    'prisma/migrations/20260101000000_create_users/migration.sql':
      'CREATE TABLE "User" ("id" SERIAL PRIMARY KEY, "email" TEXT NOT NULL UNIQUE);\n',
    [`${root}${client}.ts`]: `import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '${alias}generated/prisma/client';

export const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: process.env.DATABASE_URL }) });
`,
    [`${root}${middleware}`]: host.protects ? PROTECTING : PLAIN,
    [`${root}app/layout.tsx`]: `export default function Layout({ children }: { children: React.ReactNode }) {
  return <html lang="en"><body>{children}</body></html>;
}
`,
    [`${root}app/page.tsx`]: `import { prisma } from '${alias}${client}';

export const dynamic = 'force-dynamic';

export default async function Page() {
  return <p>{await prisma.user.count()} users</p>;
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
  const { root, middleware, alias, client } = host;
  for (const [, indent = '', file = '', code = ''] of GUIDE.matchAll(
    /^( *)```tsx?\n *\/\/ (\S+)\n(.*?)^ *```$/gms,
  )) {
    const text = code.replaceAll(new RegExp(`^${indent}`, 'gm'), '').replaceAll("'@/", `'${alias}`);
    write(folder, root + file.replace('proxy.ts', middleware), text);
  }
  write(folder, `${root}app/notes/page.tsx`, FORM);
  if (host.protects || host.passesKeyBy === 'jwtKey')
    write(folder, `${root}${middleware}`, editMiddleware(host));
  if (client !== 'lib/prisma')
    write(folder, `${root}lib/identity-link/prisma.ts`, `export { prisma } from '${alias}${client}';\n`);
}
