import { execFile, spawn } from 'node:child_process';
import { mkdir, readdir, readFile, realpath, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { extract } from 'tar';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { LAUNCH_OPTIONS } from './helpers/browser';
import { CLERK_JS_FOLDER } from './helpers/folders';
import { startHttpServer } from './helpers/http-server';
import { temporaryFolder } from './helpers/temporary-folder';

const execute = promisify(execFile);
const packageFolder = fileURLToPath(new URL('..', import.meta.url));
const folder = temporaryFolder();
const installed = path.join(folder, 'node_modules', 'clerk-emulator');
const Manifest = z.object({ dependencies: z.record(z.string(), z.string()) });

/** Finds a package in the `node_modules` folder of clerk-emulator or of a parent folder. */
async function findInstalled(name: string, from = packageFolder): Promise<string> {
  const found = await realpath(path.join(from, 'node_modules', name)).catch(() => undefined);
  return found ?? findInstalled(name, path.dirname(from));
}

async function linkPackage(name: string): Promise<void> {
  const link = path.join(folder, 'node_modules', name);
  await mkdir(path.dirname(link), { recursive: true });
  await symlink(await findInstalled(name), link, 'junction');
}

// Links the declared dependencies to the installed copies, because `npm install` would need the registry. The import of an
// undeclared dependency fails, because there is no link to it.
const pack = ['pack', './packages/clerk-emulator/dist', '--loglevel=error', '--pack-destination', folder];
await execute('npm', pack, { cwd: path.join(packageFolder, '../..') });
const [tarball = ''] = await readdir(folder);
await mkdir(installed, { recursive: true });
await extract({ file: path.join(folder, tarball), cwd: installed, strip: 1 });
const { dependencies } = Manifest.parse(
  JSON.parse(await readFile(path.join(installed, 'package.json'), 'utf8')),
);
for (const name of Object.keys(dependencies)) await linkPackage(name);

test('The release script checks the package and publishes it, up to the upload', async () => {
  const run = (tag = {}) => {
    const env = { ...process.env, ...tag };
    return execute(process.execPath, ['../release.mjs', 'clerk-emulator', '--dry-run'], {
      cwd: packageFolder,
      env,
    });
  };
  const { stdout } = await run();
  expect(stdout).toContain('All good!');
  expect(stdout).toMatch(/\+ clerk-emulator@\d/);
  const other = run({ GITHUB_REF_TYPE: 'tag', GITHUB_REF_NAME: 'clerk-emulator@9.9.9' });
  await expect(other).rejects.toThrow('The tag is clerk-emulator@9.9.9');
}, 60_000);

test('A program imports the installed package and its test helpers by name', async () => {
  const program = `
    import { startEmulator } from 'clerk-emulator';
    import { fixtures } from 'clerk-emulator/playwright';
    import { fixtures as testing, manualClock } from 'clerk-emulator/testing';
    const emulator = await startEmulator({ clock: manualClock(), console: { preferredPort: 0 } });
    const status = async (url) => (await fetch(url)).status;
    const statuses = [await status(emulator.variables.CLERK_FAPI_URL + '/v1/environment')];
    for (const file of ['/', '/main.js', '/preact.js']) statuses.push(await status(emulator.consoleUrl + file));
    await emulator.stop();
    console.log(...statuses, ...Object.keys(fixtures), ...Object.keys(testing));`;
  const { stdout } = await execute(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: folder,
  });
  expect(stdout.trim()).toBe('200 200 200 200 signedInAs resetEmulator emulator signedInAs');
});

test('Playwright workers of a CommonJS application sign users in with the fixture and with @clerk/testing', async () => {
  for (const name of ['playwright', '@clerk/backend', '@clerk/testing']) await linkPackage(name);
  const spec = await readFile(new URL('fixtures/playwright.spec.ts', import.meta.url), 'utf8');
  const server = await startHttpServer(() => new Response());
  const { port } = new URL(server.url);
  await server.stop();
  const url = `http://127.0.0.1:${port}`;
  const configuration = {
    workers: 2,
    projects: [
      { name: 'users', testMatch: ['first.spec.ts', 'second.spec.ts'] },
      { name: 'reset', testMatch: 'reset.spec.ts', dependencies: ['users'] },
    ],
    use: { baseURL: url, launchOptions: LAUNCH_OPTIONS },
    webServer: { command: 'node application.mjs', url, env: { PORT: port } },
  };
  const files = {
    'package.json': '{}',
    'application.mjs': await readFile(new URL('fixtures/application.mjs', import.meta.url), 'utf8'),
    'playwright.config.ts': `export default ${JSON.stringify(configuration)};`,
    'first.spec.ts': spec,
    'second.spec.ts': spec,
    'reset.spec.ts': await readFile(new URL('fixtures/reset.spec.ts', import.meta.url), 'utf8'),
    'seed.json':
      '{ "users": [{ "id": "user_ada", "email_address": ["ada@example.com"], "skip_password_requirement": true }] }',
  };
  for (const [name, content] of Object.entries(files)) await writeFile(path.join(folder, name), content);
  const dev = ['dev', '--port', '0', '--seed', 'seed.json', '--clerk-js-folder', CLERK_JS_FOLDER, '--'];
  const playwright = [process.execPath, path.join(folder, 'node_modules/playwright/cli.js'), 'test'];
  const child = spawn(process.execPath, [path.join(installed, 'cli.js'), ...dev, ...playwright], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  expect(await text(child.stdout)).toContain('9 passed');
}, 60_000);
