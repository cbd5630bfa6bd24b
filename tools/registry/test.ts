import { spawn } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { Client } from 'pg';
import { startPostgres } from '../../dev/postgres/server';
import { freePort } from '../../dev/system/listen';
import { endProcess, killOnExit, waitUntil } from '../../dev/system/processes';
import { deployMigrations } from '../../lib/migrations/deploy';
import { startProvider } from '../../tests/harness/identity-provider';
import { PUBLISHABLE_KEY, SECRET_KEY, SIGNING_SECRET } from '../../tests/harness/keys';
import { HOOK, ME } from '../../tests/harness/requests';
import { inTemporaryFolder, linkFiles, runStep } from '../temporary-project';
import { builtItem } from './build';
import { CHECKS, type RunningHost } from './checks';
import { createHost, guideCommands, HOSTS, type Host, write, writeGuideFiles } from './hosts';

/**
 * `npm run registry:test [-- <name>...]`: creates four applications, or the named ones (hosts.ts), in a temporary folder. Follows
 * docs/existing-app.md in each and checks the result over HTTP. Exits with 1 if a step or a check fails. Stops all programs and
 * removes the folder at the end, also after Ctrl-C.
 */
const names = process.argv.slice(2);
const MIGRATE = 'npx prisma migrate deploy';

async function step(command: string, cwd: string, env: NodeJS.ProcessEnv): Promise<void> {
  if ((await runStep(['sh', '-c', command], cwd, env)) !== 0) throw new Error(`Failed: ${command}`);
}

/** Links the packages of this project into an application. Replaces TypeScript if the application uses another version. */
async function installPackages(folder: string, { typescript }: Host): Promise<void> {
  linkFiles('node_modules', path.join(folder, 'node_modules'));
  if (typescript === '7') return;
  const other = path.join(path.dirname(folder), `typescript-${typescript}`);
  await step(
    `npm install --silent --no-save --prefix ${other} typescript@${typescript}`,
    folder,
    process.env,
  );
  const target = path.join(folder, 'node_modules/typescript');
  rmSync(target, { recursive: true });
  linkFiles(path.join(other, 'node_modules/typescript'), target);
}

/** Follows the guide in an application, up to the production build. */
async function install(folder: string, host: Host, env: NodeJS.ProcessEnv & { DATABASE_URL: string }) {
  createHost(folder, host);
  await installPackages(folder, host);
  for (const command of guideCommands()) {
    if (command.startsWith('cat ') && host.schema === 'prisma') continue;
    // Prisma's CLI downloads an engine for this command. The function below applies the same migrations without it.
    if (command === MIGRATE) await deployMigrations(env.DATABASE_URL, path.join(folder, 'prisma/migrations'));
    else await step(command, folder, env);
  }
  if (host.client !== 'lib/prisma') {
    const file = `${host.root}lib/identity-link/prisma.ts`;
    write(folder, file, `export { prisma } from '${host.alias}${host.client}';\n`);
  }
  writeGuideFiles(folder, host);
  await step('npx next build', folder, env);
}

/** Starts the production build of an application, and stops it after `use`. */
async function withServer(folder: string, port: number, env: NodeJS.ProcessEnv, use: () => Promise<void>) {
  const args = ['node_modules/next/dist/bin/next', 'start', '-H', 'localhost', '-p', String(port)];
  const child = spawn(process.execPath, args, { cwd: folder, env, detached: true, stdio: 'ignore' });
  if (child.pid === undefined) throw new Error('The application did not start.');
  const cancelKill = killOnExit(-child.pid, 'SIGTERM');
  try {
    const isReady = () =>
      fetch(`http://localhost:${port}${ME}`).then(
        ({ status }) => status < 500,
        () => false,
      );
    if (!(await waitUntil(isReady, 60_000))) throw new Error('The application does not respond.');
    await use();
  } finally {
    await endProcess(-child.pid, [{ signal: 'SIGTERM', milliseconds: 10_000 }]);
    cancelKill();
  }
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

/** Installs the item in an application and checks it. Throws if a step or a check fails. */
async function testHost(folder: string, host: Host, databaseUrl: string): Promise<void> {
  console.log(`\n# ${host.root}app, ${host.middleware}, ${host.alias}, TypeScript ${host.typescript}`);
  const port = await freePort();
  const app = `http://localhost:${port}`;
  const idp = await startProvider({
    webhook: { url: `${app}${HOOK}`, secret: SIGNING_SECRET },
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
      // The CLI of Prisma then does not download its engine, which `generate` does not use.
      PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
      DATABASE_URL: databaseUrl,
      CLERK_API_URL: idp.url,
      NEXT_PUBLIC_CLERK_PUBLISHABLE_KEY: PUBLISHABLE_KEY,
      CLERK_SECRET_KEY: SECRET_KEY,
      CLERK_JWT_KEY: idp.publicKeyPem,
      CLERK_WEBHOOK_SIGNING_SECRET: SIGNING_SECRET,
    };
    await database.connect();
    await database.query(
      `ALTER DATABASE ${host.name} SET default_transaction_isolation = '${host.isolation}'`,
    );
    await install(folder, host, env);
    await withServer(folder, port, env, async () => {
      const failed = await runChecks({ app, idp, database });
      if (failed > 0) throw new Error(`${failed} checks failed.`);
    });
  } finally {
    await database.end();
    await idp.stop();
  }
}

await inTemporaryFolder('identity-link-registry-', async (folder) => {
  const postgres = await startPostgres({ folder: path.join(folder, 'postgres'), durable: false });
  try {
    // The guide names this path, relative to the application.
    write(folder, 'identity-link/registry/identity-link.json', builtItem('identity-link'));
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
