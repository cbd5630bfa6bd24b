import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { Client } from 'pg';
import { memoryEngine } from '../../dev/kv/memory';
import { startKvServer } from '../../dev/kv/server';
import { startPostgres } from '../../dev/postgres/server';
import { freePort } from '../../dev/system/listen';
import { deployMigrations } from '../../lib/migrations/deploy';
import { startProvider } from '../../tests/harness/identity-provider';
import { PUBLISHABLE_KEY, SECRET_KEY, SIGNING_SECRET } from '../../tests/harness/keys';
import { HOOK } from '../../tests/harness/requests';
import { inTemporaryFolder, linkFiles } from '../temporary-project';
import { builtItem, itemNames } from './build';
import { CACHE_CHECKS, CHECKS, type RunningHost } from './checks';
import { checkFaults, checkFindings } from './doctor';
import { checkGitHub } from './github';
import { createHost, editHost, guideCommands, HOSTS, type Host, write } from './hosts';
import { output, step, withServer } from './steps';
import { checkUpgrade } from './upgrade';

/**
 * `npm run registry:test [-- <name>...]`: creates the four applications of hosts.ts, or the named ones, in a temporary folder.
 * Follows the guide docs/existing-app.md in each and checks the result over HTTP. In the first application, also breaks the
 * installation in each way that the doctor (a command that checks the installation) detects, and upgrades an item (source files
 * that shadcn copies into an application). At the end, installs the items in another application, as if this checkout were the
 * GitHub repository. Exits with 1 if a step or a check fails. Stops all programs and removes the folder at the end, also after
 * Ctrl-C.
 */
const names = process.argv.slice(2);
const DOCTOR = 'node scripts/identity-link/doctor.mjs';
const MIGRATE = 'npx prisma migrate deploy';

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
  for (const command of guideCommands('Install')) {
    if (command !== DOCTOR) await step(command, folder, env);
    else {
      const { CLERK_JWT_KEY, CLERK_WEBHOOK_SIGNING_SECRET, ...unset } = env;
      checkFindings(host, await output(command, folder, unset));
    }
  }
  if (host.caches) for (const command of guideCommands('Cache')) await step(command, folder, env);
  for (const command of guideCommands('Connect')) {
    if (command.startsWith('cat ') && host.schema === 'prisma') continue;
    // Prisma's CLI downloads an engine for this command. `deployMigrations` applies the same migrations without the engine.
    if (command === MIGRATE) await deployMigrations(env.DATABASE_URL, path.join(folder, 'prisma/migrations'));
    else await step(command, folder, env);
  }
  editHost(folder, host);
  await step('npx next build', folder, env);
}

/** Runs all checks, and returns how many failed. */
async function runChecks(host: RunningHost): Promise<number> {
  let failed = 0;
  for (const [name, check] of Object.entries({ ...CHECKS, ...(host.cache ? CACHE_CHECKS : {}) })) {
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

/** Installs the items in an application and checks it. Throws if a step or a check fails. */
async function testHost(folder: string, host: Host, databaseUrl: string): Promise<void> {
  console.log(`\n# ${host.root}app, ${host.middleware}, ${host.alias}, TypeScript ${host.typescript}`);
  const port = await freePort();
  const app = `http://localhost:${port}`;
  const idp = await startProvider({
    webhook: { url: `${app}${HOOK}`, secret: SIGNING_SECRET },
    retryScale: 0.001,
  });
  const engine = memoryEngine();
  const cache = { call: engine.call, isDown: false };
  const kv = await startKvServer({
    token: 'token',
    engine: {
      ...engine,
      call: (...command) => (cache.isDown ? Promise.reject(new Error('down')) : engine.call(...command)),
    },
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
      DATABASE_URL: databaseUrl,
      CLERK_API_URL: idp.url,
      NEXT_PUBLIC_CLERK_PUBLISHABLE_KEY: PUBLISHABLE_KEY,
      CLERK_SECRET_KEY: SECRET_KEY,
      CLERK_JWT_KEY: idp.publicKeyPem,
      CLERK_WEBHOOK_SIGNING_SECRET: SIGNING_SECRET,
      ...(host.caches ? { KV_REST_API_URL: kv.url, KV_REST_API_TOKEN: kv.token } : {}),
    };
    await database.connect();
    await database.query(
      `ALTER DATABASE ${host.name} SET default_transaction_isolation = '${host.isolation}'`,
    );
    await install(folder, host, env);
    await withServer(folder, 'start', port, env, async () => {
      const failed = await runChecks({ app, idp, database, cache: host.caches ? cache : undefined });
      if (failed > 0) throw new Error(`${failed} checks failed.`);
      for (const command of guideCommands('Check')) await step(command, folder, env);
    });
    if (host === HOSTS[0]) {
      await checkFaults({ folder, host, port, env, database });
      await checkUpgrade(folder, host, env);
    }
  } finally {
    await database.end();
    await kv.stop();
    await idp.stop();
  }
}

await inTemporaryFolder('identity-link-registry-', async (folder) => {
  const postgres = await startPostgres({ folder: path.join(folder, 'postgres'), durable: false });
  try {
    // The guide names these paths, relative to the application.
    for (const name of itemNames) write(folder, `identity-link/registry/${name}.json`, builtItem(name));
    for (const host of HOSTS.filter(({ name }) => names.length === 0 || names.includes(name))) {
      await postgres.createDatabase(host.name);
      const hostFolder = path.join(folder, host.name);
      mkdirSync(hostFolder);
      await testHost(hostFolder, host, postgres.url(host.name));
    }
    await checkGitHub(path.join(folder, 'from-github'));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  } finally {
    await postgres.stop();
  }
});
