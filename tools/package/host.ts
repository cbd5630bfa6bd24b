import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { Client } from 'pg';
import { freePort } from '../../dev/system/listen';
import { responds, startProcess } from '../../dev/system/start-process';
import { createTestDatabase, serverOfThisRun } from '../../tests/harness/dependencies/database';
import { startProvider } from '../../tests/harness/identity-provider';
import { PUBLISHABLE_KEY, SECRET_KEY, SIGNING_SECRET } from '../../tests/harness/keys';
import { run } from '../temporary-project';
import { type Host, TABLES } from './hosts';

/** The files of each host that use the package. Nothing else of the host knows it. */
const FILES = {
  'app/layout.tsx': `export default function Layout({ children }: { children: React.ReactNode }) {
  return <html lang="en"><body>{children}</body></html>;
}
`,
  'app/api/me/route.ts': `import { guard } from '@/lib/identity';

export const GET = guard((_request, caller) => Response.json(caller));
export const POST = GET;
`,
  // The middleware of the host does not run for it.
  'app/me.css/route.ts': `export { GET } from '@/app/api/me/route';
`,
  'app/api/tenant/route.ts': `import { getTenant, guardTenant } from '@/lib/identity';

export const GET = guardTenant(async () => Response.json({ id: (await getTenant())?.tenantId }));
`,
  'app/api/trpc/route.ts': `import { getUser } from '@/lib/identity';

export const GET = async () => Response.json((await getUser()) ?? null);
`,
  'app/api/clerk/route.ts': `import { register, webhook } from '@/lib/identity';

export const POST = webhook({
  'user.updated': async ({ id }) => console.log('updated', await register(id)),
});
`,
  'lib/webhook-events.ts': readFileSync(
    'packages/clerk-identity-link/tests/webhook-events.ts',
    'utf8',
  ).replace('../src/index', 'clerk-identity-link'),
  'app/me/page.tsx': `import { requireUser } from '@/lib/identity';

export default async function Page() {
  return <p>{(await requireUser()).userId}</p>;
}
`,
  'app/notes/actions.ts': `'use server';
import { z } from 'zod';
import { guardAction } from '@/lib/identity';

export const createNote = guardAction(z.object({ text: z.string().min(1) }), async ({ text }, { userId }) => ({ text, userId }));
`,
  'app/notes/page.tsx': `'use client';
import { useActionState } from 'react';
import { createNote } from './actions';

export default function Page() {
  const [result, action] = useActionState(createNote, undefined);
  return <form action={action}><input name="text" /><output>{JSON.stringify(result)}</output></form>;
}
`,
  'proxy.ts': `import { clerkMiddleware, createRouteMatcher } from '@clerk/nextjs/server';
import { NextResponse } from 'next/server';

const isPrivate = createRouteMatcher(['/private(.*)']);

export default clerkMiddleware(async (auth, request) => {
  if (isPrivate(request)) await auth.protect();
  return NextResponse.next({ headers: { 'x-host': 'ran' } });
});
export const config = {
  matcher: ['/((?!_next|[^?]*\\\\.(?:html?|css|js(?!on)|jpe?g|svg|ico)).*)', '/(api|trpc)(.*)'],
};
`,
};

const json = (value: object) => `${JSON.stringify(value, undefined, 2)}\n`;

export function write(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [file, text] of Object.entries(files)) {
    const target = path.join(folder, file);
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, text);
  }
}

const own = JSON.parse(readFileSync('package.json', 'utf8')).dependencies;
/** Dependencies with the versions of this checkout. pnpm lets a package import nothing else. */
const pick = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, own[name]]));
const OF_WEB = ['next', 'react', 'react-dom', '@clerk/nextjs', 'zod', 'tsx', '@types/node', '@types/react'];
const OF_DATABASE = ['prisma', '@prisma/client', '@prisma/adapter-pg', 'tsx'];

const NPM = 'npm install --legacy-peer-deps --ignore-scripts --prefer-offline --no-audit --no-fund';
const PNPM =
  'npx --yes pnpm@10.34.9 add --ignore-scripts --prefer-offline --filter web --filter @repo/database';

/** Writes the files of a host, and installs the package as docs/existing-app.md says. */
async function install(root: string, host: Host, env: NodeJS.ProcessEnv): Promise<void> {
  const { application, source, dependencies, files } = host;
  const isMonorepo = application !== '.';
  const typescript = { typescript: '5.9.3' };
  const web = { ...pick(...OF_WEB), ...typescript, '@repo/database': 'workspace:*' };
  const database = { ...pick(...OF_DATABASE), ...typescript, 'server-only': '0.0.1' };
  write(root, {
    'package.json': json({ private: true, ...(!isMonorepo && { dependencies }) }),
    ...(isMonorepo && {
      'pnpm-workspace.yaml': 'packages: [apps/*, packages/*]\n',
      'apps/web/package.json': json({ name: 'web', private: true, dependencies: web }),
      'packages/database/package.json': json({
        name: '@repo/database',
        main: 'index.ts',
        dependencies: database,
      }),
    }),
    ...files,
  });
  write(path.join(root, application), {
    'tsconfig.json': json({
      compilerOptions: {
        target: 'ES2017',
        lib: ['dom', 'dom.iterable', 'esnext'],
        module: 'esnext',
        moduleResolution: 'bundler',
        jsx: 'react-jsx',
        strict: true,
        noEmit: true,
        skipLibCheck: true,
        isolatedModules: true,
        esModuleInterop: true,
        resolveJsonModule: true,
        paths: { '@/*': [`./${source}*`] },
      },
      include: ['next-env.d.ts', '**/*.ts', '**/*.tsx', ...(isMonorepo ? ['../../packages/**/*.ts'] : [])],
      exclude: ['node_modules'],
    }),
    'next.config.mjs': `import path from 'node:path';

const root = path.resolve('${path.relative(path.join(root, application), path.join(root, '../..'))}');
export default { transpilePackages: ['@repo/database'], turbopack: { root }, outputFileTracingRoot: root };
`,
  });
  // Next.js 15 has no proxy.ts.
  for (const [file, text] of Object.entries(FILES))
    write(path.join(root, application, source), {
      [dependencies['next'] ? file.replace('proxy', 'middleware') : file]: text,
    });
  const add = isMonorepo ? PNPM : NPM;
  await run(`${add} ${path.resolve(root, '../..')}/clerk-identity-link.tgz`, root, env);
  if (!host.name.startsWith('Drizzle')) await run('prisma generate', path.join(root, host.database), env);
  // Applications have TypeScript 5, with which `next build` checks their types. The `tsc` of this checkout is faster.
  const compiler = path.resolve('packages/clerk-identity-link/node_modules/typescript');
  if (!isMonorepo) symlinkSync(compiler, path.join(root, 'node_modules/typescript'));
}

/** Creates a host below a folder with the packages of this checkout, and starts it. */
export async function startHost(checkout: string, host: Host) {
  const folderOf = host.application === '.' ? 'npm' : 'pnpm';
  const root = path.join(checkout, folderOf, host.name.replaceAll(/\W+/g, '-'));
  const folder = path.join(root, host.application);
  const idp = await startProvider({ retryScale: 0.001 });
  const { url: databaseUrl, drop } = await createTestDatabase({
    ...serverOfThisRun(),
    template: 'template0',
  });
  const database = new Client(databaseUrl);
  await database.connect();
  await database.query(TABLES);
  const bins = [folder, path.join(root, host.database), path.join(checkout, 'npm')].map((each) =>
    path.join(each, 'node_modules/.bin'),
  );
  const env = {
    ...process.env,
    PATH: [...bins, process.env['PATH']].join(path.delimiter),
    NODE_ENV: host.isBuilt ? ('production' as const) : ('development' as const),
    NEXT_TELEMETRY_DISABLED: '1',
    NEXT_PUBLIC_CLERK_TELEMETRY_DISABLED: '1',
    // Prisma's CLI downloads its engine unless this variable names a program. `generate` does not run this program.
    PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
    DATABASE_URL: databaseUrl,
    CLERK_API_URL: idp.url,
    CLERK_FAPI_URL: idp.url,
    NEXT_PUBLIC_CLERK_PUBLISHABLE_KEY: PUBLISHABLE_KEY,
    CLERK_SECRET_KEY: SECRET_KEY,
    CLERK_JWT_KEY: idp.publicKeyPem,
    CLERK_WEBHOOK_SIGNING_SECRET: SIGNING_SECRET,
  };
  await install(root, host, env);
  const port = await freePort();
  const url = `http://localhost:${port}`;
  if (host.isBuilt) await run('next build', folder, env);
  const next = createRequire(path.join(folder, 'package.json')).resolve('next/dist/bin/next');
  const args = [next, host.isBuilt ? 'start' : 'dev', '-H', 'localhost', '-p', String(port)];
  const server = startProcess(process.execPath, args, { cwd: folder, env, group: true });
  await server.ready(() => responds(`${url}/api/trpc`), 120_000);
  // Compiles them, which takes longer than a test waits.
  for (const page of ['me', 'notes', 'api/clerk', 'api/tenant', 'api/me'])
    await fetch(`${url}/${page}`, { redirect: 'manual' });
  return {
    url,
    idp,
    database,
    folder,
    root,
    /** Runs a command in the folder of the application. */
    run: (command: string) => run(command, folder, env),
    /** Returns what the application has logged. */
    log: () => server.output(),
    async stop() {
      await server.stop();
      await database.end();
      await drop();
      await idp.stop();
    },
  };
}
export type RunningHost = Awaited<ReturnType<typeof startHost>>;
