import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { startDedicatedPostgres } from '../../tests/harness/dependencies/dedicated-postgres';
import { startDependencies } from '../../tests/harness/service';
import { addExampleTo, buildForPlatform, copyTree, installTool } from './build';
import { buildChecks } from './build-checks';
import { measureFunctions } from './cold-start';
import { deploy } from './deployment';
import { exampleChecks, grantExampleTables } from './example-checks';
import { type DeployWith, lifecycleChecks } from './lifecycle-checks';
import { printReport, runChecks } from './report';
import { responseChecks } from './response-checks';

/**
 * `npm run verify:vercel`: builds the service with the Vercel CLI and runs the functions as the platform does. The functions
 * use PostgreSQL, a KV server and the Clerk emulator on this machine. Does not need a Vercel account. Prints the cold start of
 * each function and the result of each check. Exits with 1 if a check failed. Takes four to ten minutes. Linux only.
 *
 * With `--example`, the build contains examples/projects. The pages and a server action of the example are then checked, too,
 * and cold starts are not measured.
 */
const { example } = parseArgs({ options: { example: { type: 'boolean', default: false } } }).values;

const stops: (() => unknown)[] = [];
let stopped: Promise<void> | undefined;
const stop = () => {
  stopped ??= (async () => {
    for (const each of stops.reverse()) await each();
  })();
  return stopped;
};
const interrupted = () => void stop().finally(() => process.exit(130));
process.once('SIGINT', interrupted).once('SIGTERM', interrupted);

/** Returns the name of the service's database role, and the SQL that creates the role, from step 2 of docs/deploy.md. */
function readRole(password: string): { readonly username: string; readonly statements: string } {
  const page = readFileSync('docs/deploy.md', 'utf8');
  const [, statements = '', username = ''] = /^```sql\n(CREATE ROLE (\w+) [^`]+)```$/m.exec(page) ?? [];
  return { username, statements: statements.replace("PASSWORD ''", `PASSWORD '${password}'`) };
}

async function verify(): Promise<void> {
  console.log('Installing the Vercel CLI and copying the project');
  await installTool();
  const folder = mkdtempSync(path.join(os.tmpdir(), 'identity-link-vercel-'));
  stops.push(() => rmSync(folder, { recursive: true, force: true }));
  const tree = path.join(folder, 'tree');
  await copyTree(tree);
  if (example) await addExampleTo(tree);

  const server = await startDedicatedPostgres();
  stops.push(server.stop);
  const password = randomBytes(24).toString('hex');
  const { username, statements } = readRole(password);
  const dependencies = await startDependencies({
    // The database must be empty, because a check below expects that the build applies the migrations. The default template
    // already contains the tables. `template0` is an empty template.
    server: { ...server, template: 'template0' },
    databaseUrl: ({ url }) => Object.assign(new URL(url), { username, password }).href,
    keys: 'live',
    // An empty value unsets a variable. A deployment does not set these variables of the local stack.
    environment: { CLERK_API_URL: '', CLERK_FAPI_URL: '' },
  });
  stops.push(dependencies.stop);
  const production = { ...dependencies.environment, MIGRATION_DATABASE_URL: dependencies.database.url };

  const local = path.join(tree, '.env.local');
  const built = await runChecks('build', [
    {
      title: 'The copied project has no .env.local, and a build with this file fails',
      async run() {
        assert.ok(!existsSync(local));
        writeFileSync(local, 'IDP_SECRET_KEY=another-key\n');
        const { succeeded, output } = await buildForPlatform(tree, { VERCEL_ENV: 'preview' });
        rmSync(local);
        assert.ok(!succeeded);
        assert.match(output, /A build for deployment must not find \.env\.local/);
      },
    },
    {
      title:
        'The build runs `vercel-build`, which migrates the database as the owner of the database and then builds the service',
      async run() {
        const { succeeded, output } = await buildForPlatform(tree, {
          ...production,
          VERCEL_ENV: 'production',
        });
        assert.ok(succeeded, output);
        assert.match(output, /^applied \d+_create_users$/m);
      },
    },
  ]);
  if (!built) return printReport([]);
  await dependencies.database.pool.query(statements);
  if (example) await grantExampleTables(dependencies, username);

  const output = path.join(tree, '.vercel', 'output');
  const start = async (name: string, hideServer: boolean, changes: Readonly<Record<string, string>> = {}) => {
    const platformVariables = {
      VERCEL: '1',
      VERCEL_ENV: 'production',
      VERCEL_REGION: 'iad1',
      VERCEL_URL: 'identity-link.vercel.app',
    };
    const all = Object.entries({ ...platformVariables, ...production, ...changes }).filter(
      ([, value]) => value !== '',
    );
    const deployment = await deploy({
      output,
      folder: path.join(folder, name),
      environment: Object.fromEntries(all),
      hideServer,
    });
    stops.push(deployment.stop);
    return deployment;
  };
  // Vercel does not document in which process its HTTP server runs. If the server runs in the process of the function, code of
  // the function could find the server object and depend on it. The checks therefore run with a server that the function can
  // find, and again with a server that it cannot find.
  const visible = await start('visible', false);
  const hidden = await start('hidden', true);
  const deployWith: DeployWith = (changes) => start('changed', true, changes);
  const secrets = [
    dependencies.environment['IDP_SECRET_KEY'],
    dependencies.environment['IDP_WEBHOOK_SIGNING_SECRET'],
    dependencies.environment['KV_REST_API_TOKEN'],
    password,
    new URL(dependencies.database.url).password,
  ].filter((value) => value !== undefined);
  await runChecks('build', buildChecks(tree, visible, secrets));
  await runChecks('visible server', responseChecks('visible', visible, dependencies));
  await runChecks('hidden server', responseChecks('hidden', hidden, dependencies));
  if (example) {
    await runChecks('example with visible server', exampleChecks('visible', visible, dependencies));
    await runChecks('example with hidden server', exampleChecks('hidden', hidden, dependencies));
  }
  await runChecks('', lifecycleChecks([visible, hidden], dependencies, deployWith));
  printReport(example ? [] : await measureFunctions(visible, dependencies));
}

try {
  await verify();
} finally {
  await stop();
}
