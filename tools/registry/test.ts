import { cpSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { Client } from 'pg';
import { startPostgres } from '../../dev/postgres/server';
import { freePort } from '../../dev/system/listen';
import { startProvider } from '../../tests/harness/identity-provider';
import { PUBLISHABLE_KEY, SECRET_KEY, SIGNING_SECRET } from '../../tests/harness/keys';
import { HOOK } from '../../tests/harness/requests';
import { inTemporaryFolder, linkFiles } from '../temporary-project';
import { CHECKS, NEXT_SECRET, type RunningHost } from './checks';
import { createHost, editHost, guideCommands, HOSTS, type Host } from './hosts';
import { output, step, withServer } from './steps';

/**
 * `npm run registry:test [-- <name>...]`: creates the two applications of hosts.ts, or the named ones, in a temporary folder.
 * Follows the guide docs/existing-app.md in each, checks the result over HTTP, and runs the doctor. Exits with 1 if a step or a
 * check fails. Stops all programs and removes the folder at the end, also after Ctrl-C.
 */
const names = process.argv.slice(2);

/** Runs the commands of the guide and makes its edits, up to the production build. */
async function install(folder: string, host: Host, env: NodeJS.ProcessEnv): Promise<void> {
  createHost(folder, host);
  linkFiles('node_modules', path.join(folder, 'node_modules'));
  for (const command of guideCommands('Install')) await step(command, folder, env);
  if (host.links.length === 0)
    for (const command of guideCommands('Choose the table')) await step(command, folder, env);
  editHost(folder, host);
  await step('npx prisma generate', folder, env);
  await step('npx next build', folder, env);
}

/** Runs all checks, and returns how many failed. */
async function runChecks(host: RunningHost): Promise<number> {
  let failed = 0;
  for (const [name, check] of Object.entries(CHECKS)) {
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

/** Runs the doctor of the guide. Throws if it fails, does not try a check, or leaves a row. */
async function runDoctor(folder: string, host: Host, database: Client, env: NodeJS.ProcessEnv) {
  for (const command of guideCommands('Check')) {
    const { status, text } = await output(command.replace('lib/', `${host.root}lib/`), folder, env);
    if (status !== 0 || text.includes('not tried')) throw new Error('The doctor finds a problem.');
    const { name, user } = host.table;
    const left = await database.query(`SELECT 1 FROM ${name} WHERE ${user} LIKE 'user\\_doctor%'`);
    if (left.rows.length > 0) throw new Error('The doctor left a row.');
  }
}

/** Installs the items in an application and checks it. Throws if a step or a check fails. */
async function testHost(folder: string, host: Host, databaseUrl: string): Promise<void> {
  console.log(`\n# ${host.name}: ${host.root}app, ${host.middleware}, ${host.alias}`);
  const port = await freePort();
  const app = `http://localhost:${port}`;
  const slash = host.config.includes('trailingSlash') ? '/' : '';
  const idp = await startProvider({
    webhook: { url: `${app}${HOOK}${slash}`, secret: SIGNING_SECRET },
    retryScale: 0.001,
  });
  const database = new Client(databaseUrl);
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
      APPLICATION_URL: app,
      DATABASE_URL: host.schema ? `${databaseUrl}?schema=${host.schema}` : databaseUrl,
      CLERK_API_URL: idp.url,
      NEXT_PUBLIC_CLERK_PUBLISHABLE_KEY: PUBLISHABLE_KEY,
      CLERK_SECRET_KEY: SECRET_KEY,
      CLERK_JWT_KEY: idp.publicKeyPem.replaceAll('\n', '\\n'),
      CLERK_WEBHOOK_SIGNING_SECRET: `${SIGNING_SECRET} ${NEXT_SECRET}`,
    };
    await database.connect();
    await database.query(host.sql);
    await install(folder, host, env);
    await withServer(folder, 'start', port, env, async () => {
      const failed = await runChecks({ app, idp, database, table: host.table, slash });
      if (failed > 0) throw new Error(`${failed} checks failed.`);
      await runDoctor(folder, host, database, env);
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
