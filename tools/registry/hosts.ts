import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { findSteps, MATCHER } from '../../registry/steps';
import { linkFiles } from '../temporary-project';

/** Columns of the link. */
export interface Table {
  readonly name: string;
  readonly id: string;
  /** Column of Clerk's id. */
  readonly user: string;
  /** SQL of an insert whose only parameter is Clerk's id. */
  readonly insert: string;
  /** True for the application's own table, whose rows need data of a user at the provider. */
  readonly isOwn: boolean;
}

/** An application in which `npm run registry:test` installs the shadcn items of docs/existing-app.md. */
export interface Application {
  /** Folder of the application in the host. */
  readonly folder: '.' | 'apps/app' | 'apps/api';
  /** Folder of `app/` and `lib/`: `src/` or the root. */
  readonly root: 'src/' | '';
  /** The item of the guide's commands that it leaves out. */
  readonly leavesOut: '-guard' | '-webhook';
  readonly config: string;
  readonly middleware?: 'proxy.ts' | 'middleware.ts';
  /** Arguments of `withIdentityLink`. */
  readonly arguments?: string;
}

/** A repository with one or two applications and a database. */
export interface Host {
  readonly applications: readonly Application[];
  /** Folder of the Prisma schema, and the file in it that exports the Prisma client. */
  readonly database: '.' | 'packages/database';
  readonly client: string;
  readonly models: string;
  /** SQL that creates the tables of `models` and, if it is installed, of the item's model. */
  readonly sql: string;
  readonly table: Table;
}

/** Compiler options of `create-next-app`, with the older library of other applications. Next.js adds the others. */
const COMPILER_OPTIONS = {
  target: 'ES2017',
  lib: ['dom', 'dom.iterable', 'es2022'],
  module: 'esnext',
  moduleResolution: 'bundler',
  skipLibCheck: true,
  strict: true,
  noEmit: true,
};

const json = (value: object) => `${JSON.stringify(value, null, 2)}\n`;

/** Writes files and their folders. */
function write(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [file, text] of Object.entries(files)) {
    const target = path.join(folder, file);
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, text);
  }
}

/** If package.json lists `svix`, shadcn does not run npm, which would download packages. */
const manifest = (name: string) =>
  json({ name, private: true, workspaces: ['apps/*', 'packages/*'], dependencies: { next: '*', svix: '*' } });
const aliasOf = (root: string) => (root ? '~/' : '@/');

/** Creates the files of a host with Clerk and Prisma, as they are before the installation. */
export function createHost(folder: string, { applications, database, client, models }: Host): void {
  write(folder, { 'package.json': manifest('host'), '.gitignore': 'node_modules\n.next\ngenerated\n' });
  linkFiles('node_modules', path.join(folder, 'node_modules'));
  mkdirSync(path.join(folder, 'node_modules/@repo'));
  symlinkSync(path.join(folder, database), path.join(folder, 'node_modules/@repo/database'));
  const depth = client.split('/').length - 1;
  write(path.join(folder, database), {
    'package.json': manifest('database'),
    'prisma.config.ts': `import { defineConfig } from 'prisma/config';

export default defineConfig({ schema: 'prisma/schema.prisma' });
`,
    'prisma/schema.prisma': `generator client {
  provider = "prisma-client"
  output   = "../generated/prisma"
}

datasource db {
  provider = "postgresql"
}

${models}`,
    [client]: `import 'server-only';
import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '${depth ? '../'.repeat(depth) : './'}generated/prisma/client';

const connection = { connectionString: process.env.DATABASE_URL };
export const ${depth ? 'prisma' : 'database'} = new PrismaClient({ adapter: new PrismaPg(connection) });
`,
  });
  for (const { folder: of, root, config } of applications)
    write(path.join(folder, of), {
      'package.json': manifest(path.basename(path.join(folder, of))),
      'tsconfig.json': json({
        compilerOptions: { ...COMPILER_OPTIONS, paths: { [`${aliasOf(root)}*`]: [`./${root}*`] } },
        include: ['next-env.d.ts', '**/*.ts', '**/*.tsx', '.next/types/**/*.ts'],
        exclude: ['node_modules'],
      }),
      'next.config.mjs': config,
      'public/logo.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>\n',
      [`${root}app/layout.tsx`]: `import { Suspense } from 'react';

export default function Layout({ children }: { children: React.ReactNode }) {
  return <html lang="en"><body>${
    config.includes('cacheComponents') ? '<Suspense>{children}</Suspense>' : '{children}'
  }</body></html>;
}
`,
      [`${root}app/page.tsx`]: `export default function Page() {
  return <p>host</p>;
}
`,
    });
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

const ROUTE = readFileSync('app/users/v1/me/route.ts', 'utf8').replaceAll('#lib/', '@/lib/identity-link/');
const PAGE = `import { requireUser } from '@/lib/identity-link/user';

export default async function Page() {
  return <p>{(await requireUser()).userId}</p>;
}
`;
const ACTION = `'use server';
import { z } from 'zod';
import { guardAction } from '@/lib/identity-link/guard-action';

export const createNote = guardAction(z.object({ text: z.string().min(1) }), async ({ text }, { userId }) => ({ text, userId }));
`;

/** A form for the server action. */
const FORM = `'use client';
import { useActionState } from 'react';
import { createNote } from './actions';

export default function Page() {
  const [result, action] = useActionState(createNote, undefined);
  return <form action={action}><input name="text" /><output>{JSON.stringify(result)}</output></form>;
}
`;

/** Path and code of a host's own route for `user.created`. */
export const OWN_WEBHOOK = '/api/webhooks/clerk';
const WEBHOOK_ROUTE = `import { verifyWebhook } from '@clerk/nextjs/webhooks';
import type { NextRequest } from 'next/server';
import { registerByIdentityProviderUserId } from '@/lib/identity-link/register';

export async function POST(request: NextRequest) {
  const event = await verifyWebhook(request).catch(() => undefined);
  if (event?.type === 'user.created') await registerByIdentityProviderUserId(event.data.id);
  return Response.json({}, { status: event ? 200 : 400 });
}
`;

/** Code of a route for the members of an organization. */
const TENANT_ROUTE = `import { guardTenant } from '@/lib/identity-link/guard-tenant';
import { getTenant } from '@/lib/identity-link/tenant';

export const GET = guardTenant(async () => Response.json({ id: (await getTenant())?.tenantId }));
`;

/** Returns the installed configuration with the lines that the doctor prints for the tables of the application, and those of the guide. */
function ownConfiguration(folder: string, installed: string): string {
  const printed = findSteps(folder).flatMap(({ lines }) => lines);
  const code = printed.filter((line) => /^(?:export | |\})/.test(line));
  const parts = installed.split(/^(?=export |type )/m);
  const kept = parts.filter(
    (part) => !/^export const (?:users|ID|CLERK_ID|otherColumns|insert)\b/.test(part),
  );
  const [, guide] = /^```ts\n(\/\/ lib\/identity-link\.config\.ts\n.*?)^```$/ms.exec(GUIDE) ?? [];
  return [...kept, ...code, guide].join('\n');
}

/** Makes the edits that the doctor and docs/existing-app.md ask for, and writes files of the host that use the items. */
export function editApplication(folder: string, application: Application, { table }: Host): void {
  const { root, middleware } = application;
  if (middleware === undefined) return;
  const config = path.join(folder, root, 'lib/identity-link.config.ts');
  const files = {
    'app/users/v1/me/route.ts': ROUTE,
    'app/users/v1/[name]/route.ts': ROUTE,
    'app/me/page.tsx': PAGE,
    'app/notes/page.tsx': FORM,
    'app/notes/actions.ts': ACTION,
    [middleware]: `import { NextResponse } from 'next/server';
import { withIdentityLink } from '@/lib/identity-link/middleware';

export default withIdentityLink(${application.arguments});
${MATCHER.join('\n').replace('<start of each guarded path>', 'users/v1')}
`,
    ...(table.isOwn && {
      'lib/identity-link.config.ts': ownConfiguration(folder, readFileSync(config, 'utf8')),
      [`app${OWN_WEBHOOK}/route.ts`]: WEBHOOK_ROUTE,
      'app/users/v1/tenant/route.ts': TENANT_ROUTE,
    }),
  };
  for (const [file, text] of Object.entries(files))
    write(path.join(folder, root), { [file]: text.replaceAll("'@/", `'${aliasOf(root)}`) });
}
