import { readFileSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { Client } from 'pg';
import { waitUntil } from '../../dev/system/processes';
import { ME } from '../../tests/harness/requests';
import { type Host, write } from './hosts';
import { output, withServer } from './steps';

type Output = Awaited<ReturnType<typeof output>>;

/**
 * Throws if the doctor (doctor.mjs, which checks an installation) did not print each of the expected lines, or if its exit code
 * is not 1.
 */
function requireFindings({ status, text }: Output, expected: readonly string[]): void {
  const missing = expected.filter((line) => !text.includes(line));
  if (missing.length > 0) throw new Error(`The doctor did not print:\n${missing.join('\n')}`);
  if (status !== 1) throw new Error(`The doctor found a problem, but its exit code is ${status}.`);
}

/** Throws if the doctor does not print each edit that an application needs after the installation. */
export function checkFindings({ root, client, schema }: Host, result: Output): void {
  const isElsewhere = client !== 'lib/prisma';
  requireFindings(result, [
    'CLERK_JWT_KEY=',
    'CLERK_WEBHOOK_SIGNING_SECRET=',
    'the Prisma client does not have the model IdentityLink',
    ...(schema === 'prisma' ? [] : [`cat prisma/identity-link.prisma >> ${schema}`]),
    'npx prisma generate',
    'npx prisma migrate deploy',
    ...(isElsewhere ? [`export { prisma } from '../../${client}';`] : []),
  ]);
  if (!isElsewhere && !result.text.includes(`ok       prisma client`))
    throw new Error(`The doctor does not find ${root}${client}.ts.`);
}

interface FaultyHost {
  readonly folder: string;
  readonly host: Host;
  readonly port: number;
  readonly env: NodeJS.ProcessEnv;
  readonly database: Client;
}

interface Fault {
  readonly finding: string;
  /** Variables of the doctor. The variables of the application stay the same. */
  readonly env?: Readonly<Record<string, string>>;
  /** Path that the doctor checks as a guarded route. */
  readonly route?: string;
  /** Text of proxy.ts. */
  readonly proxy?: string;
  /** Breaks the application and resolves with a function that repairs it. */
  readonly apply?: (host: FaultyHost) => Promise<() => Promise<unknown>>;
}

const clerk = (call: string) => `import { clerkMiddleware } from '@clerk/nextjs/server';
export default clerkMiddleware(${call});
`;
const protecting = (route: string) =>
  clerk(
    `async (auth, request) => { if (request.nextUrl.pathname === '${route}') await auth.protect(); }, { jwtKey: process.env.CLERK_JWT_KEY }`,
  );
const WITH_KEY = '{ jwtKey: process.env.CLERK_JWT_KEY }';

const FAULTS: Readonly<Record<string, Fault>> = {
  'the middleware does not run for the register route': {
    proxy: `${clerk(WITH_KEY)}export const config = { matcher: '${ME}' };`,
    finding: 'clerkMiddleware does not run for /auth/v1/register',
  },
  'the middleware does not run for a guarded route': {
    proxy: `${clerk(WITH_KEY)}export const config = { matcher: '/auth/v1/register' };`,
    route: ME,
    finding: `clerkMiddleware does not run for ${ME}`,
  },
  'the middleware does not pass jwtKey': {
    proxy: clerk(''),
    finding: 'the middleware does not use CLERK_JWT_KEY',
  },
  'the middleware protects the register route': {
    proxy: protecting('/auth/v1/register'),
    finding: 'the middleware protects /auth/v1/register',
  },
  'the middleware protects the webhook': {
    proxy: protecting('/webhooks/idp/v1/user-created'),
    finding: 'the middleware protects /webhooks/idp/v1/user-created',
  },
  'a route is not guarded': { route: '/', finding: '200 instead of 401' },
  'a route does not exist': { route: '/missing', finding: '/missing does not exist (404)' },
  'a public key is missing': { env: { CLERK_JWT_KEY: '' }, finding: 'CLERK_JWT_KEY=' },
  'the webhook has another signing secret': {
    env: {
      CLERK_WEBHOOK_SIGNING_SECRET: `whsec_${Buffer.from('another signing secret').toString('base64')}`,
    },
    finding: 'the application has another CLERK_WEBHOOK_SIGNING_SECRET',
  },
  'the application uses another database': {
    // The doctor reads the table of another schema, so it does not find the user that the application has linked.
    env: { PGOPTIONS: '-c search_path=other' },
    finding: 'the application has another DATABASE_URL',
    apply: async ({ database }) => {
      await database.query(
        'CREATE SCHEMA other; CREATE TABLE other.identity_links (LIKE public.identity_links INCLUDING ALL)',
      );
      return () => database.query('DROP SCHEMA other CASCADE');
    },
  },
  'the unique key is missing': {
    finding: 'identity_provider_user_id has no unique key',
    apply: async ({ database }) => {
      const index = 'identity_links_identity_provider_user_id_key';
      await database.query(`DROP INDEX ${index}`);
      return () =>
        database.query(`CREATE UNIQUE INDEX ${index} ON identity_links (identity_provider_user_id)`);
    },
  },
  'the migration is not applied': {
    finding: 'the table identity_links does not exist',
    apply: async ({ database }) => {
      await database.query('ALTER TABLE identity_links RENAME TO renamed');
      return () => database.query('ALTER TABLE renamed RENAME TO identity_links');
    },
  },
  'the model is not in the schema': {
    finding: 'the Prisma client does not have the model IdentityLink',
    apply: async ({ folder, env }) => {
      const [fragment, removed] = ['prisma/identity-link.prisma', 'identity-link.prisma'].map((file) =>
        path.join(folder, file),
      );
      renameSync(fragment ?? '', removed ?? '');
      await output('npx prisma generate', folder, env);
      return async () => {
        renameSync(removed ?? '', fragment ?? '');
        await output('npx prisma generate', folder, env);
      };
    },
  },
  'an upgrade has replaced the file that reads the cache': {
    // shadcn installs registry items, which are sets of source files. The cache item adds a kv.ts and replaces the user-id.ts
    // of the core item. An upgrade of the core item restores its own user-id.ts. This application has only the core item, so
    // `apply` adds a kv.ts beside the user-id.ts of the core item.
    finding: 'the cache is not used',
    apply: async ({ folder, host }) => {
      const file = `${host.root}lib/identity-link/kv.ts`;
      write(folder, file, 'export {};\n');
      return async () => rmSync(path.join(folder, file));
    },
  },
};

/** Breaks an application in each way that the doctor finds, and throws if the doctor does not name the problem. */
export async function checkFaults(faulty: FaultyHost): Promise<void> {
  const { folder, host, port } = faulty;
  const env = { ...faulty.env, NODE_ENV: 'development' as const };
  const proxy = `${host.root}${host.middleware}`;
  const original = readFileSync(path.join(folder, proxy), 'utf8');
  await withServer(folder, 'dev', port, env, async () => {
    for (const [name, fault] of Object.entries(FAULTS)) {
      console.log(`\n# Fault: ${name}`);
      if (fault.proxy) write(folder, proxy, fault.proxy);
      const repair = await fault.apply?.({ ...faulty, env });
      const command = `node scripts/identity-link/doctor.mjs ${fault.route ?? ''}`;
      let result: Output | undefined;
      // `next dev` compiles a changed proxy.ts after some time.
      await waitUntil(async () => {
        result = await output(command, folder, { ...env, ...fault.env });
        return result.text.includes(fault.finding);
      }, 60_000);
      if (result) requireFindings(result, [fault.finding]);
      await repair?.();
      if (fault.proxy) write(folder, proxy, original);
    }
    const repaired = async () =>
      (await output(`node scripts/identity-link/doctor.mjs ${ME}`, folder, env)).status === 0;
    if (!(await waitUntil(repaired, 60_000)))
      throw new Error('The doctor finds a problem in a repaired application.');
  });
}
