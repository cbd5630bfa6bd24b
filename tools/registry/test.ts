import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Client } from 'pg';
import { startPostgres } from '../../dev/postgres/server';
import { freePort } from '../../dev/system/listen';
import { startProvider } from '../../tests/harness/identity-provider';
import { PUBLISHABLE_KEY, SECRET_KEY, SIGNING_SECRET } from '../../tests/harness/keys';
import { HOOK, ME } from '../../tests/harness/requests';
import { inTemporaryFolder } from '../temporary-project';
import { type Checks, NEXT_SECRET, type RunningHost } from './checks';
import {
  type Application,
  createHost,
  editApplication,
  editConfiguration,
  guideBlocks,
  HOSTS,
  type Host,
} from './hosts';
import { output, step, withServer } from './steps';

/**
 * `npm run registry:test [-- <name>...]`: creates the hosts of hosts.ts, or the named ones, in a temporary folder. Follows the guide docs/existing-app.md in each, checks the result over HTTP, and runs the doctor. Exits with 1 if a step or a
 * check fails. Stops all programs and removes the folder at the end, also after Ctrl-C.
 */
const names = process.argv.slice(2);

type RunningApplication = Application & { readonly port: number };

/** Returns the commands with the items that the application installs, and with the folder of the checkout beside a monorepo. */
const commandsFor = (commands: readonly string[], { folder, leavesOut, adds }: Application) =>
  commands.map((command) =>
    command
      .replace(`,${leavesOut}`, '')
      .replace('-doctor}', adds ? `-doctor,${adds}}` : '-doctor}')
      // The guide writes out the other commands of a monorepo.
      .replaceAll(/(?<=cd |overwrite )(?=\.\.\/identity-link)/g, folder === '.' ? '' : '../../'),
  );

/** Runs the commands of the guide and makes its edits, up to the production builds. */
async function install(folder: string, host: Host, env: NodeJS.ProcessEnv): Promise<void> {
  createHost(folder, host);
  const isMonorepo = host.database !== '.';
  const [inApplication = [], inDatabase = []] = guideBlocks(isMonorepo ? 'In a monorepo' : 'Install');
  const [ofModel = []] = isMonorepo ? [inDatabase] : guideBlocks('Choose the table');
  const database = path.join(folder, host.database);
  for (const application of host.applications)
    for (const command of commandsFor(inApplication, application))
      await step(command, path.join(folder, application.folder), env);
  if (!host.table.needsClerkUser) for (const command of ofModel) await step(command, database, env);
  for (const application of host.applications)
    editApplication(path.join(folder, application.folder), application, host);
  const configuration = isMonorepo ? 'identity-link.ts' : 'lib/identity-link.config.ts';
  if (!host.table.needsClerkUser) editConfiguration(path.join(database, configuration), host);
  await step('npx prisma generate', database, env);
  await step(COMMIT, folder, env);
  for (const application of host.applications)
    await upgrade(path.join(folder, application.folder), application, env);
  for (const { folder: of } of host.applications) await step('npx next build', path.join(folder, of), env);
}

const COMMIT =
  'git init -q && git add -A && git -c user.name=test -c user.email=test@example.com commit -qm "Install the items"';
const OLDER_VERSION = 'find . -path "*/lib/identity-link/*.ts" -exec sed -i "1i // an older version" {} +';

/** Upgrades installed files of an older version. Throws if one of them stays, or if another file changes. */
async function upgrade(folder: string, application: Application, env: NodeJS.ProcessEnv): Promise<void> {
  await step(OLDER_VERSION, folder, env);
  for (const [command = ''] of guideBlocks('Upgrade'))
    for (const each of commandsFor([command], application)) await step(each, folder, env);
  const { text } = await output('git status --porcelain', folder, env);
  if (text !== '') throw new Error('The upgrade left or changed a file.');
}

/** Runs the checks, and returns how many failed. */
async function runChecks(checks: readonly Checks[], host: RunningHost): Promise<number> {
  let failed = 0;
  for (const [name, check] of checks.flatMap((group) => Object.entries(group))) {
    try {
      await check(host);
      console.log(`ok      ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${name}\n${error instanceof Error ? error.message : error}`);
    }
  }
  return failed;
}

/** Runs the doctor of the guide. Throws if it fails, does not try more checks than expected, or leaves a row. */
async function runDoctor(
  folder: string,
  application: Application,
  host: RunningHost,
  env: NodeJS.ProcessEnv,
) {
  const { root, leavesOut, webhook = HOOK, notTried } = application;
  const user = host.table.needsClerkUser ? ` ${host.idp.createUser({ email: 'doctor@example.com' }).id}` : '';
  const own = webhook === HOOK ? '' : ` webhook:${webhook}`;
  for (const [command = ''] of guideBlocks('Check')) {
    const given = leavesOut === '-guard' ? command.replace(ME, '') : command;
    const { status, text } = await output(given.replace('lib/', `${root}lib/`) + user + own, folder, env);
    if (status !== 0 || text.split('not tried').length - 1 !== notTried)
      throw new Error('The doctor finds a problem.');
  }
  const { name, user: column } = host.table;
  const left = await host.database.query(`SELECT 1 FROM ${name} WHERE ${column} LIKE 'user\\_doctor%'`);
  if (left.rows.length > 0) throw new Error('The doctor left a row.');
}

/** Starts the applications of a host, each at its own address, and stops them after `use`. */
async function withApplications(
  folder: string,
  applications: readonly RunningApplication[],
  env: NodeJS.ProcessEnv,
  use: () => Promise<void>,
): Promise<void> {
  const [first, ...others] = applications;
  if (first === undefined) return use();
  await withServer(path.join(folder, first.folder), 'start', first.port, env, () =>
    withApplications(folder, others, env, use),
  );
}

/** Installs the items in the applications of a host and checks them. Throws if a step or a check fails. */
async function testHost(folder: string, host: Host, databaseUrl: string): Promise<void> {
  console.log(`\n# ${host.name}`);
  const applications: RunningApplication[] = [];
  for (const application of host.applications) applications.push({ ...application, port: await freePort() });
  const slash = host.applications[0]?.config.includes('trailingSlash') ? '/' : '';
  const app = `http://localhost:${applications[0]?.port}`;
  const receiver = applications.find(({ webhook }) => webhook);
  const hook = `http://localhost:${receiver?.port}${receiver?.webhook}${slash}`;
  const isOwn = receiver?.webhook !== HOOK;
  const idp = await startProvider({
    // The users of this host exist at the provider, and the checks send their webhooks.
    ...(host.table.needsClerkUser ? {} : { webhook: { url: hook, secret: SIGNING_SECRET } }),
    retryScale: 0.001,
  });
  const database = new Client(databaseUrl);
  const { table } = host;
  const log = () => readFileSync(path.join(folder, 'server.log'), 'utf8');
  const running = { app, hook, idp, database, table, slash, log } as const;
  try {
    const env = {
      ...process.env,
      NODE_ENV: 'production' as const,
      // Lets npx install shadcn without a question.
      npm_config_yes: 'true',
      NEXT_TELEMETRY_DISABLED: '1',
      NEXT_PUBLIC_CLERK_TELEMETRY_DISABLED: '1',
      // Prisma's CLI downloads its engine unless this variable names a program. `generate` does not run this program.
      PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
      DATABASE_URL: host.schema ? `${databaseUrl}?schema=${host.schema}` : databaseUrl,
      CLERK_API_URL: idp.url,
      CLERK_FAPI_URL: idp.url,
      NEXT_PUBLIC_CLERK_PUBLISHABLE_KEY: PUBLISHABLE_KEY,
      CLERK_SECRET_KEY: SECRET_KEY,
      CLERK_JWT_KEY: idp.publicKeyPem.replaceAll('\n', '\\n'),
      // Clerk's `verifyWebhook` takes one secret.
      CLERK_WEBHOOK_SIGNING_SECRET: isOwn ? SIGNING_SECRET : `${SIGNING_SECRET} ${NEXT_SECRET}`,
    };
    await database.connect();
    await database.query(host.sql);
    await install(folder, host, env);
    await withApplications(folder, applications, env, async () => {
      const failed = await runChecks(host.checks, running);
      if (failed > 0) throw new Error(`${failed} checks failed.`);
      for (const application of applications) {
        const doctorEnv = { ...env, APPLICATION_URL: `http://localhost:${application.port}` };
        await runDoctor(path.join(folder, application.folder), application, running, doctorEnv);
      }
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
