import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Client } from 'pg';
import { startPostgres } from '../../dev/postgres/server';
import { freePort } from '../../dev/system/listen';
import { startProvider } from '../../tests/harness/identity-provider';
import { PUBLISHABLE_KEY, SECRET_KEY, SIGNING_SECRET } from '../../tests/harness/keys';
import { HOOK, ME } from '../../tests/harness/requests';
import { inTemporaryFolder } from '../temporary-project';
import { NEXT_SECRET, type RunningHost } from './checks';
import {
  type Application,
  createHost,
  editApplication,
  guideBlocks,
  HOSTS,
  type Host,
  OWN_WEBHOOK,
} from './hosts';
import { output, step, withServers } from './steps';

/**
 * `npm run registry:test [-- <name>...]`: creates the hosts of hosts.ts, or the named ones, in a temporary folder. Follows the
 * guide docs/existing-app.md in each, upgrades the items, checks the result over HTTP, and runs the doctor. Exits with 1 if a
 * step or a check fails. Stops all programs and removes the folder at the end, also after Ctrl-C.
 */
const names = process.argv.slice(2);

const COMMIT =
  'git init -q && git add -A && git -c user.name=test -c user.email=test@localhost commit -qm test';
const MAKE_OLD = 'find . -path "*/lib/identity-link/*.ts" -exec sed -i "1i // an older version" {} +';
const USE_CLIENT = `sed -i "s|{ prisma } from './prisma'|{ database as prisma } from './index'|" identity-link.ts`;

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
  const inEachApplication = async (run: (application: Application, its: string) => Promise<void>) => {
    for (const application of host.applications)
      await run(application, path.join(folder, application.folder));
  };
  await inEachApplication(async ({ leavesOut }, its) => {
    for (const command of inApplication) await step(withItems(command, leavesOut, host), its, env);
  });
  for (const command of inDatabase) await step(command, database, env);
  await inEachApplication(async (application, its) => editApplication(its, application, host));
  if (isMonorepo) await step(USE_CLIENT, database, env);
  await step('npx prisma generate', database, env);
  await step(COMMIT, folder, env);
  await inEachApplication(async ({ leavesOut }, its) => {
    await step(MAKE_OLD, its, env);
    // The guide gives the path of an application that is not in a monorepo.
    const command = upgrade.replaceAll(/(?<=cd |overwrite )(?=\.\.)/g, isMonorepo ? '../../' : '');
    await step(withItems(command, leavesOut, host), its, env);
  });
  const { text } = await output('git status --porcelain', folder, env);
  if (text !== '') throw new Error('An upgrade left an old file, or changed a file of the host.');
  await inEachApplication((_, its) => step('npx next build', its, env));
}

/** Runs the checks. Throws if one of them fails. */
async function runChecks({ checks }: Host, running: RunningHost): Promise<void> {
  let failed = 0;
  for (const [name, check] of checks.flatMap((group) => Object.entries(group))) {
    try {
      await check(running);
      console.log(`ok      ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${name}\n${error instanceof Error ? error.message : error}`);
    }
  }
  if (failed > 0) throw new Error(`${failed} checks failed.`);
}

/** Runs the doctor of the guide. Throws if it fails, skips a check of what is installed, or leaves a row. */
async function runDoctor(
  folder: string,
  application: Application,
  running: RunningHost,
  env: NodeJS.ProcessEnv,
) {
  const { root, leavesOut } = application;
  const { idp, table, database } = running;
  const [[command = ''] = []] = guideBlocks('Check');
  const doctor = command.replace('lib/', `${root}lib/`).replace(ME, leavesOut === '-guard' ? '' : ME);
  const user = table.isOwn
    ? ` ${idp.createUser({ email: 'doctor@example.com' }).id} webhook:${OWN_WEBHOOK}`
    : '';
  const { status, text } = await output(doctor + user, folder, env);
  // In the host's own route, the doctor links no user. The route of another application is not checked at all.
  const notTried = table.isOwn ? 1 : leavesOut === '-webhook' ? 2 : 0;
  if (status !== 0 || text.split('not tried').length !== notTried + 1)
    throw new Error('The doctor finds a problem.');
  const made = `SELECT 1 FROM ${table.name} WHERE ${table.user} LIKE 'user\\_doctor%'`;
  if ((await database.query(made)).rows.length > 0) throw new Error('The doctor left a row.');
}

/** Installs the items in the applications of a host and checks them. Throws if a step or a check fails. */
async function testHost(folder: string, host: Host, databaseUrl: string): Promise<void> {
  console.log(`\n# ${host.name}`);
  const { table, applications } = host;
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
  const idp = await startProvider({
    // The checks themselves send the webhooks of users that exist at the provider.
    ...(table.isOwn ? {} : { webhook: { url: hook, secret: SIGNING_SECRET } }),
    retryScale: 0.001,
  });
  const database = new Client(databaseUrl);
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
  const log = () => readFileSync(path.join(folder, 'server.log'), 'utf8');
  const running = { app, hook, idp, database, table, slash, log } as const;
  try {
    await database.connect();
    await database.query(host.sql);
    await install(folder, host, env);
    await withServers(servers, env, async () => {
      await runChecks(host, running);
      for (const { application, folder: its, url } of servers)
        await runDoctor(its, application, running, { ...env, APPLICATION_URL: url });
    });
  } finally {
    await database.end();
    await idp.stop();
  }
}

await inTemporaryFolder('identity-link-registry-', async (folder) => {
  const postgres = await startPostgres({ folder: path.join(folder, 'postgres'), durable: false });
  try {
    // The guide names this folder, relative to the application.
    for (const file of ['registry.json', 'registry', 'lib'])
      cpSync(file, path.join(folder, 'identity-link', file), { recursive: true });
    for (const host of HOSTS.filter(({ name }) => names.length === 0 || names.includes(name))) {
      await postgres.createDatabase(host.name);
      const hostFolder = path.join(folder, host.name);
      mkdirSync(hostFolder);
      await testHost(hostFolder, host, postgres.url(host.name));
    }
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  } finally {
    await postgres.stop();
  }
});
