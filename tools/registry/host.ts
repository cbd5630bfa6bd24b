import { cpSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { Emulator } from 'clerk-emulator';
import { Client } from 'pg';
import { freePort } from '../../dev/system/listen';
import { responds, type StartedProcess, startProcess } from '../../dev/system/start-process';
import { findSteps } from '../../registry/steps';
import { createTestDatabase, serverOfThisRun } from '../../tests/harness/dependencies/database';
import { startProvider } from '../../tests/harness/identity-provider';
import { PUBLISHABLE_KEY, SECRET_KEY, SIGNING_SECRET } from '../../tests/harness/keys';
import { HOOK, ME } from '../../tests/harness/requests';
import { stopAfterAll } from '../../tests/vitest/stop-after-all';
import { temporaryFolder } from '../../tests/vitest/temporary-folder';
import { run } from '../temporary-project';
import {
  type Application,
  createHost,
  editApplication,
  guideBlocks,
  type Host,
  OWN_WEBHOOK,
  type Table,
} from './hosts';

const NEXT = createRequire(import.meta.url).resolve('next/dist/bin/next');
const COMMIT =
  'git init -q && git add -A && git -c user.name=test -c user.email=test@localhost commit -qm test';
const MAKE_OLD = 'find . -path "*/lib/identity-link/*.ts" -exec sed -i "1i // an older version" {} +';
const USE_CLIENT = `sed -i "s|{ prisma } from './prisma'|{ database as prisma } from './index'|" identity-link.ts`;
const ADD_EVENTS = `echo "export const events = { 'user.deleted': (data: unknown) =>
  users().deleteMany({ where: { [CLERK_ID]: Object(data).id } }) };" >> identity-link.ts`;

/** The second of two signing secrets during a rotation. */
export const NEXT_SECRET = `whsec_${Buffer.alloc(24).toString('base64')}`;

/** A running host with the installed shadcn items, its identity provider, and a connection to its database. */
export interface RunningHost {
  readonly app: string;
  /** Address of the route for `user.created`. */
  readonly hook: string;
  readonly idp: Emulator;
  readonly database: Client;
  readonly table: Table;
  /** `/` if the application has `trailingSlash`. Next.js redirects a path without it before any code of the application. */
  readonly slash: '/' | '';
  readonly servers: readonly {
    readonly application: Application;
    readonly folder: string;
    readonly url: string;
  }[];
  /** Environment of the applications. */
  readonly env: NodeJS.ProcessEnv;
  /** Returns what the applications have logged. */
  log(): string;
}

/** Returns a command with the items of an application. The guide mentions some of them only in its text. */
const withItems = (command: string, leavesOut: string, { table }: Host) =>
  command
    .replace(`,${leavesOut}`, '')
    .replace(',-guard', `,-guard,-register${table.isOwn ? ',-tenants' : ''}`);

/** Runs the commands of the guide and makes its edits, up to the production builds. Throws if an upgrade changes other files. */
async function install(folder: string, host: Host, env: NodeJS.ProcessEnv): Promise<void> {
  createHost(folder, host);
  const database = path.join(folder, host.database);
  const isMonorepo = host.database !== '.';
  const [inApplication = [], inDatabase = []] = guideBlocks(isMonorepo ? 'In a monorepo' : 'Install');
  const [[upgrade = ''] = []] = guideBlocks('Upgrade');
  const inEachApplication = async (work: (application: Application, its: string) => Promise<unknown>) => {
    for (const application of host.applications)
      await work(application, path.join(folder, application.folder));
  };
  await inEachApplication(async ({ leavesOut }, its) => {
    for (const command of inApplication) await run(withItems(command, leavesOut, host), its, env);
  });
  for (const command of inDatabase) await run(command, database, env);
  await inEachApplication(async (application, its) => editApplication(its, application, host));
  if (isMonorepo) await run(`${USE_CLIENT} && ${ADD_EVENTS}`, database, env);
  await run('npx prisma generate', database, env);
  await run(COMMIT, folder, env);
  await inEachApplication(async ({ leavesOut, root }, its) => {
    const [next] = findSteps(its);
    if (next) throw new Error(`The doctor still has a step: ${next.places} ${next.lines.join('\n')}`);
    await run(MAKE_OLD, its, env);
    // The guide gives the path of an application that is not in a monorepo.
    const inRoot = upgrade.replace('rm -r ', `rm -r ${root}`);
    const command = inRoot.replaceAll(/(?<=cd |overwrite )(?=\.\.)/g, isMonorepo ? '../../' : '');
    await run(withItems(command, leavesOut, host), its, env);
  });
  const changes = await run('git status --porcelain', folder, env);
  if (changes !== '')
    throw new Error(`An upgrade left an old file, or changed a file of the host:\n${changes}`);
  await inEachApplication((_, its) => run('npx next build', its, env));
}

/** Creates a host with the shadcn items as the guide says, and starts its applications. Stops them after the tests of the file. */
export async function startHost(host: Host): Promise<RunningHost> {
  const { table, applications } = host;
  const root = temporaryFolder();
  // The guide names this folder, relative to the application.
  for (const file of ['registry.json', 'registry', 'lib'])
    cpSync(file, path.join(root, 'identity-link', file), { recursive: true });
  const folder = path.join(root, 'host');
  mkdirSync(folder);
  const servers = await Promise.all(
    applications.map(async (application) => {
      const port = await freePort();
      const url = `http://localhost:${port}`;
      return { application, folder: path.join(folder, application.folder), port, url };
    }),
  );
  const app = servers[0]?.url ?? '';
  const slash = applications[0]?.config.includes('trailingSlash') ? '/' : '';
  const hook = `${servers.at(-1)?.url}${table.isOwn ? OWN_WEBHOOK : HOOK}${slash}`;
  const idp = stopAfterAll(
    await startProvider({
      // The tests themselves send the webhooks of users that exist at the provider.
      ...(table.isOwn ? {} : { webhook: { url: hook, secret: SIGNING_SECRET } }),
      retryScale: 0.001,
    }),
  );
  const { url: databaseUrl, drop } = await createTestDatabase({
    ...serverOfThisRun(),
    template: 'template0',
  });
  stopAfterAll({ stop: drop });
  const database = new Client(databaseUrl);
  await database.connect();
  stopAfterAll({ stop: () => database.end() });
  await database.query(host.sql);
  const env = {
    ...process.env,
    NODE_ENV: 'production' as const,
    // Lets npx install shadcn without a question.
    npm_config_yes: 'true',
    NEXT_TELEMETRY_DISABLED: '1',
    NEXT_PUBLIC_CLERK_TELEMETRY_DISABLED: '1',
    // Prisma's CLI downloads its engine unless this variable names a program. `generate` does not run this program.
    PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
    DATABASE_URL: databaseUrl,
    CLERK_API_URL: idp.url,
    CLERK_FAPI_URL: idp.url,
    NEXT_PUBLIC_CLERK_PUBLISHABLE_KEY: PUBLISHABLE_KEY,
    CLERK_SECRET_KEY: SECRET_KEY,
    CLERK_JWT_KEY: idp.publicKeyPem.replaceAll('\n', '\\n'),
    // Clerk's own verification takes one secret.
    CLERK_WEBHOOK_SIGNING_SECRET: table.isOwn ? SIGNING_SECRET : `${SIGNING_SECRET} ${NEXT_SECRET}`,
  };
  await install(folder, host, env);
  const processes: StartedProcess[] = [];
  for (const { folder: cwd, port, url } of servers) {
    const args = [NEXT, 'start', '-H', 'localhost', '-p', String(port)];
    const server = stopAfterAll(startProcess(process.execPath, args, { cwd, env, group: true }));
    await server.ready(() => responds(`${url}${ME}`));
    processes.push(server);
  }
  const log = () => processes.map(({ output }) => output()).join('');
  return { app, hook, idp, database, table, slash, servers, env, log };
}
