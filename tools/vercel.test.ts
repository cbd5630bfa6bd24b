import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { startProcess } from '../dev/system/start-process';
import { BUILD_TIME_VALUES, withoutServiceVariables } from '../tests/harness/build';
import { createTestDatabase, serverOfThisRun } from '../tests/harness/dependencies/database';
import { stopAfterAll } from '../tests/vitest/stop-after-all';
import { temporaryFolder } from '../tests/vitest/temporary-folder';
import { copyCheckout } from './temporary-project';

// `npm run verify:vercel` builds the service with the Vercel CLI, as Vercel does, prints the size of each function and checks the
// output. The tests do not run the functions. They need neither a Vercel account nor, once the CLI is installed, a network.

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
function copyProject(): void {
  copyCheckout(tree);
  mkdirSync(path.join(tree, '.vercel'));
  // The packages are already installed, so the installation only runs the postinstall script.
  const settings = { framework: 'nextjs', installCommand: 'npm run postinstall' };
  const project = { projectId: 'prj_placeholder', orgId: 'team_placeholder', settings };
  writeFileSync(path.join(tree, '.vercel', 'project.json'), JSON.stringify(project));
}

/** Runs `vercel build`, which writes to `.vercel/output`. Resolves with the exit code and what the build printed. */
async function build(environment: Readonly<Record<string, string>>) {
  const options = ['--prod', '--standalone', '--yes', '--token', 'none', '--global-config', `${tree}-config`];
  const { exited, output } = startProcess(
    path.join(TOOL, 'node_modules/.bin/vercel'),
    ['build', ...options],
    {
      cwd: tree,
      env: {
        ...withoutServiceVariables(),
        ...environment,
        VERCEL_TELEMETRY_DISABLED: '1',
        // The build needs no network. The proxy address makes every HTTPS request fail.
        HTTPS_PROXY: 'http://127.0.0.1:9',
        npm_config_offline: 'true',
      },
      group: true,
    },
  );
  return { code: await exited, output: output() };
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

installTool();
const tree = path.join(temporaryFolder(), 'tree');
copyProject();

// The build applies the migrations to an empty database.
const database = await createTestDatabase({ ...serverOfThisRun(), template: 'template0' });
stopAfterAll({ stop: database.drop });
const variables = { ...BUILD_TIME_VALUES, DATABASE_URL: database.url };
const built = await build({ ...variables, VERCEL_ENV: 'production' });
if (built.code !== 0) throw new Error(`The build failed with ${built.code}:\n${built.output}`);

const output = path.join(tree, '.vercel/output');
const root = path.join(output, 'functions');
const entries = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.func'),
);
/** Folder of each function by its path. Several paths may be symbolic links to one function. */
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
/** Returns the configuration of the function at a path. */
const configAt = (address: string) =>
  functions.find(({ folder }) => folder === folders.get(`${address}.func`))?.config;
console.table(functions.map(({ name, megabytes }) => ({ function: name, megabytes: Math.round(megabytes) })));

test('The build applies the migrations', () => {
  expect(built.output).toMatch(/^applied \d+_create_users$/m);
});

test('The middleware runs on Node.js before every route', () => {
  const { routes } = Routes.parse(readJson(path.join(output, 'config.json')));
  const paths = routes.flatMap(({ middlewarePath }) => middlewarePath ?? []);
  expect([...new Set(paths)]).toEqual(['/_middleware']);
  expect(configAt('_middleware')).toMatchObject({ launcherType: 'Nodejs' });
});

test('All functions use Node.js 24, and the routes and pages have the maxDuration of vercel.json', () => {
  const { maxDuration } = Platform.parse(readJson('vercel.json')).functions['app/**/*'] ?? {};
  expect(maxDuration).toBeDefined();
  for (const { name, config } of functions) expect(config.runtime, name).toBe('nodejs24.x');
  for (const address of ['users/v1/me', 'auth/v1/register', 'webhooks/idp/v1/user-created', 'account'])
    expect(configAt(address), address).toMatchObject({ maxDuration });
});

test(`No function is larger than ${MAX_MEGABYTES} MB`, () => {
  expect(functions.filter(({ megabytes }) => megabytes > MAX_MEGABYTES).map(({ name }) => name)).toEqual([]);
});

test('Every function contains instrumentation.ts', () => {
  const file = '.next/server/instrumentation.js';
  expect(functions.filter(({ files }) => !files.includes(file)).map(({ name }) => name)).toEqual([]);
});

test('No function contains an environment file, or a file for developers or operators', () => {
  const { devDependencies } = Package.parse(readJson('package.json'));
  const names = Object.keys(devDependencies).map((name) => `node_modules/${name}/`);
  const found = functions.flatMap(({ name, files }) =>
    files
      .filter((file) => NOT_DEPLOYED.test(file) || names.some((each) => file.startsWith(each)))
      .map((file) => `${name}: ${file}`),
  );
  expect(found).toEqual([]);
});

test('No file of the output contains a secret', () => {
  const secrets = [
    ...Object.values(variables).filter((value) => !value.startsWith('pk_')),
    new URL(database.url).password,
  ];
  for (const file of filesIn(output)) {
    const text = readFileSync(path.join(output, file), 'utf8');
    expect(
      secrets.filter((secret) => text.includes(secret)),
      file,
    ).toEqual([]);
  }
});

test('A build with .env.local fails', async () => {
  writeFileSync(path.join(tree, '.env.local'), 'IDP_SECRET_KEY=another-key\n');
  const rejected = await build({ VERCEL_ENV: 'preview' });
  expect(rejected.output).toMatch(/must not find \.env\.local/);
  expect(rejected.code).not.toBe(0);
});
