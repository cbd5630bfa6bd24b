import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { BUILD_TIME_VALUES, withoutServiceVariables } from '../tests/harness/build';
import { createTestDatabase } from '../tests/harness/dependencies/database';
import { startDedicatedPostgres } from './dedicated-postgres';
import { copyCheckout, inTemporaryFolder } from './temporary-project';

/**
 * `npm run verify:vercel`: builds the service with the Vercel CLI, as Vercel does, and checks the output. Does not run the
 * functions. Needs neither a Vercel account nor, once the CLI is installed, a network. Prints the size of each function and the
 * result of each check. Exits with 1 if a check failed.
 */

/**
 * Versions of the Vercel CLI and of its dependency `sandbox`. The version of `sandbox` overrides the one that the CLI requests,
 * because some registries lack the requested version.
 */
const VERSIONS = { vercel: '64.0.2', sandbox: '4.5.0' } as const;
/** Folder of the CLI (360 MB). All runs share it. */
const TOOL = path.resolve('.local', `vercel-${VERSIONS.vercel}`);
/** Folders for developers and operators, and environment files except the example. No function may contain a file of these. */
const NOT_DEPLOYED = /^(?:dev|packages|tests|bench|tools|commands|prisma)\/|^\.env(?!\.example$)/;
/** Maximum size of a function on Vercel, in megabytes (https://vercel.com/docs/functions/limitations). */
const MAX_MEGABYTES = 250;

const execute = promisify(execFile);

/** Installs the CLI, if it is not installed. */
function installTool(): void {
  mkdirSync(TOOL, { recursive: true });
  const { vercel, sandbox } = VERSIONS;
  const manifest = { private: true, dependencies: { vercel }, overrides: { sandbox } };
  writeFileSync(path.join(TOOL, 'package.json'), JSON.stringify(manifest));
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', '--prefer-offline'];
  execFileSync('npm', ['install', ...options], { cwd: TOOL, stdio: 'inherit' });
}

/** Copies the project, and adds the settings of a Vercel project. The ids of the project and the team are placeholders. */
function copyProject(tree: string): void {
  copyCheckout(tree);
  mkdirSync(path.join(tree, '.vercel'));
  // The packages are already installed, so the installation only runs the postinstall script.
  const settings = { framework: 'nextjs', installCommand: 'npm run postinstall' };
  const project = { projectId: 'prj_placeholder', orgId: 'team_placeholder', settings };
  writeFileSync(path.join(tree, '.vercel', 'project.json'), JSON.stringify(project));
}

/** Runs `vercel build`, which writes to `.vercel/output`. Returns what it printed, and whether it succeeded. */
function build(tree: string, environment: Readonly<Record<string, string>>) {
  const args = [
    'build',
    '--prod',
    '--standalone',
    '--yes',
    '--token',
    'none',
    '--global-config',
    `${tree}-config`,
  ];
  const ran = execute(path.join(TOOL, 'node_modules', '.bin', 'vercel'), args, {
    cwd: tree,
    // The build needs no network. The proxy address makes every HTTPS request fail.
    env: {
      ...{ ...withoutServiceVariables(), ...environment, VERCEL_TELEMETRY_DISABLED: '1' },
      ...{ HTTPS_PROXY: 'http://127.0.0.1:9', npm_config_offline: 'true' },
    },
    timeout: 900_000,
    maxBuffer: 2 ** 24,
  });
  return ran.then(
    ({ stdout, stderr }) => ({ succeeded: true, output: `${stdout}\n${stderr}` }),
    (error: { stdout?: string; stderr?: string }) => ({
      succeeded: false,
      output: `${error.stdout}\n${error.stderr}`,
    }),
  );
}

const Config = z.object({
  runtime: z.string(),
  launcherType: z.string(),
  maxDuration: z.optional(z.number()),
});
const Platform = z.object({ functions: z.record(z.string(), z.object({ maxDuration: z.number() })) });
const Package = z.object({ devDependencies: z.record(z.string(), z.string()) });
const Routes = z.object({ routes: z.array(z.object({ middlewarePath: z.optional(z.string()) })) });

const readJson = (file: string): unknown => JSON.parse(readFileSync(file, 'utf8'));
const filesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
    statSync(path.join(folder, file)).isFile(),
  );

/** Reads the functions of the build. Several paths may be symbolic links to one function. */
function readFunctions(output: string) {
  const root = path.join(output, 'functions');
  const entries = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.func'),
  );
  const folders = new Map(entries.map((entry) => [entry, realpathSync(path.join(root, entry))]));
  const functions = [...new Set(folders.values())].map((folder) => {
    const files = filesIn(folder);
    return {
      folder,
      name: path.relative(root, folder).replace(/\.func$/, ''),
      config: Config.parse(readJson(path.join(folder, '.vc-config.json'))),
      files,
      megabytes: files.reduce((sum, file) => sum + statSync(path.join(folder, file)).size, 0) / 1e6,
    };
  });
  const at = (address: string) => {
    const found = functions.find(({ folder }) => folder === folders.get(`${address}.func`));
    assert.ok(found, `There is no function at ${address}.`);
    return found;
  };
  return { functions, at };
}

/** Checks of the output, by title. */
function checks(tree: string, secrets: readonly string[]): Readonly<Record<string, () => void>> {
  const output = path.join(tree, '.vercel', 'output');
  const { functions, at } = readFunctions(output);
  console.table(
    functions.map(({ name, megabytes }) => ({ function: name, megabytes: Math.round(megabytes) })),
  );
  return {
    'The middleware runs on Node.js before every route': () => {
      const { routes } = Routes.parse(readJson(path.join(output, 'config.json')));
      const paths = routes.flatMap(({ middlewarePath }) => middlewarePath ?? []);
      assert.deepEqual([...new Set(paths)], ['/_middleware']);
      assert.equal(at('_middleware').config.launcherType, 'Nodejs');
    },
    'All functions use Node.js 24, and the routes and pages have the maxDuration of vercel.json': () => {
      const { maxDuration } = Platform.parse(readJson('vercel.json')).functions['app/**/*'] ?? {};
      assert.ok(maxDuration);
      for (const { name, config } of functions) assert.equal(config.runtime, 'nodejs24.x', name);
      for (const address of ['users/v1/me', 'auth/v1/register', 'webhooks/idp/v1/user-created', 'account'])
        assert.equal(at(address).config.maxDuration, maxDuration, address);
    },
    [`No function is larger than ${MAX_MEGABYTES} MB`]: () => {
      assert.deepEqual(
        functions.filter(({ megabytes }) => megabytes > MAX_MEGABYTES).map(({ name }) => name),
        [],
      );
    },
    'Every function contains instrumentation.ts': () => {
      for (const { name, files } of functions)
        assert.ok(files.includes('.next/server/instrumentation.js'), `not in ${name}`);
    },
    'No function contains an environment file, or a file for developers or operators': () => {
      const { devDependencies } = Package.parse(readJson('package.json'));
      const names = Object.keys(devDependencies).map((name) => `node_modules/${name}/`);
      const found = functions.flatMap(({ name, files }) =>
        files
          .filter((file) => NOT_DEPLOYED.test(file) || names.some((each) => file.startsWith(each)))
          .map((file) => `${name}: ${file}`),
      );
      assert.deepEqual(found, []);
    },
    'No file of the output contains a secret': () => {
      for (const file of filesIn(output)) {
        const text = readFileSync(path.join(output, file), 'utf8');
        assert.deepEqual(
          secrets.filter((secret) => text.includes(secret)),
          [],
          file,
        );
      }
    },
  };
}

function runChecks(all: Readonly<Record<string, () => void>>): void {
  for (const [title, check] of Object.entries(all)) {
    try {
      check();
      console.log(`ok      ${title}`);
    } catch (error) {
      process.exitCode = 1;
      console.log(`FAILED  ${title}\n${error instanceof Error ? error.message : error}`);
    }
  }
}

/** Builds with an empty database, because `vercel-build` applies the migrations. */
async function verify(folder: string): Promise<void> {
  installTool();
  const tree = path.join(folder, 'tree');
  copyProject(tree);
  const local = path.join(tree, '.env.local');
  writeFileSync(local, 'IDP_SECRET_KEY=another-key\n');
  const rejected = await build(tree, { VERCEL_ENV: 'preview' });
  rmSync(local);
  const server = await startDedicatedPostgres();
  try {
    const database = await createTestDatabase({ ...server, template: 'template0' });
    const variables = { ...BUILD_TIME_VALUES, DATABASE_URL: database.url };
    const built = await build(tree, { ...variables, VERCEL_ENV: 'production' });
    await database.drop();
    const secrets = [
      ...Object.values(variables).filter((value) => !value.startsWith('pk_')),
      new URL(database.url).password,
    ];
    runChecks({
      'A build with .env.local fails': () => {
        assert.ok(!rejected.succeeded);
        assert.match(rejected.output, /must not find \.env\.local/);
      },
      'The build applies the migrations': () => {
        assert.ok(built.succeeded, built.output);
        assert.match(built.output, /^applied \d+_create_users$/m);
      },
    });
    if (built.succeeded) runChecks(checks(tree, secrets));
  } finally {
    await server.stop();
  }
}

await inTemporaryFolder('identity-link-vercel-', verify);
