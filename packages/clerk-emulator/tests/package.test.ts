import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, realpath, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { extract } from 'tar';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { stopAfterTest } from './helpers/stop';
import { temporaryFolder } from './helpers/temporary-folder';

const execute = promisify(execFile);
const packageFolder = fileURLToPath(new URL('..', import.meta.url));
const Manifest = z.object({ dependencies: z.record(z.string(), z.string()) });

/** Finds a dependency in the `node_modules` folder of clerk-emulator or of a parent folder. */
async function findInstalled(name: string, folder = packageFolder): Promise<string> {
  const installed = await realpath(path.join(folder, 'node_modules', name)).catch(() => undefined);
  if (installed !== undefined) return installed;
  const parent = path.dirname(folder);
  if (parent === folder) throw new Error(`${name} is not installed.`);
  return findInstalled(name, parent);
}

/**
 * Packs clerk-emulator and extracts the tarball into a folder. Links the declared dependencies to the installed copies, because
 * `npm install` would need the registry. The import of an undeclared dependency fails, because there is no link to it.
 */
async function installTarball(folder: string): Promise<string> {
  await execute('npm', ['pack', '--ignore-scripts', '--loglevel=error', '--pack-destination', folder], {
    cwd: path.join(packageFolder, 'dist'),
  });
  const [tarball = ''] = await readdir(folder);
  const installed = path.join(folder, 'node_modules', 'clerk-emulator');
  await mkdir(installed, { recursive: true });
  await extract({ file: path.join(folder, tarball), cwd: installed, strip: 1 });
  const manifest = Manifest.parse(JSON.parse(await readFile(path.join(installed, 'package.json'), 'utf8')));
  for (const name of Object.keys(manifest.dependencies)) {
    await linkPackage(folder, name);
  }
  return installed;
}

async function linkPackage(folder: string, name: string): Promise<void> {
  const link = path.join(folder, 'node_modules', name);
  await mkdir(path.dirname(link), { recursive: true });
  await symlink(await findInstalled(name), link, 'junction');
}

/** Runs Node.js in a folder outside of the project. `lines` emits the lines of the output, and `stop` ends the process. */
function runNode(folder: string, args: readonly string[]) {
  const child = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const kill = () => child.kill();
  process.once('exit', kill);
  return {
    lines: createInterface({ input: child.stdout }),
    exited,
    async stop() {
      process.off('exit', kill);
      kill();
      await exited;
    },
  };
}

const folder = temporaryFolder();
const installed = await installTarball(folder);

test('The tarball of the package contains the modules, their declarations and the web page of the console, but no tests', async () => {
  const files = await readdir(installed, { recursive: true });
  expect(files).toEqual(
    expect.arrayContaining(['LICENSE', 'README.md', 'cli.js', 'index.d.ts', 'page/main.js']),
  );
  expect(files.filter((file) => file.includes('.test.'))).toEqual([]);
});

test('The clerk-emulator command of the installed package starts the emulated APIs and the web page of the console on free ports', async () => {
  const { lines, stop } = stopAfterTest(runNode(folder, [path.join(installed, 'cli.js'), '--port', '0']));
  const addresses = new Map<string, string>();
  for await (const line of lines) {
    const [, name, address] = /^(CLERK_API_URL=|# Console: )(http:.*)$/.exec(line) ?? [];
    if (name !== undefined && address !== undefined) addresses.set(name, address);
    if (addresses.size === 2) break;
  }
  const environment = await fetch(`${addresses.get('CLERK_API_URL=')}/v1/environment`);
  expect(environment.status).toBe(200);
  expect(await environment.json()).toHaveProperty('user_settings');
  for (const file of ['/', '/main.js', '/preact.js']) {
    expect((await fetch(`${addresses.get('# Console: ')}${file}`)).status, file).toBe(200);
  }
  await stop();
});

test('The clerk-emulator command rejects an invalid port, and prints the available options for --help', async () => {
  const bin = path.join(installed, 'cli.js');
  const failure = await execute(process.execPath, [bin, '--port', 'x'], { cwd: folder }).catch(
    (error) => error,
  );
  expect(failure).toMatchObject({ code: 1, stderr: expect.stringContaining('--port: x is not valid.') });
  const { stdout } = await execute(process.execPath, [bin, '--help'], { cwd: folder });
  expect(stdout).toContain('--data-file');
});

test('A program imports the installed package and its test helpers by name', async () => {
  const program = `
    import { startEmulator } from 'clerk-emulator';
    import { fixtures } from 'clerk-emulator/playwright';
    import { fixtures as testing, manualClock } from 'clerk-emulator/testing';
    const emulator = await startEmulator({ clock: manualClock() });
    const { status } = await fetch(emulator.variables.CLERK_FAPI_URL + '/v1/environment');
    await emulator.stop();
    console.log(status, ...Object.keys(fixtures), ...Object.keys(testing));`;
  const { stdout } = await execute(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: folder,
  });
  expect(stdout.trim()).toBe('200 signedInAs emulator signedInAs');
});

test('The Vitest fixtures of the installed package provide an emulator and a token for a user', async () => {
  await linkPackage(folder, 'vitest');
  const program = `
    import { expect, test as base } from 'vitest';
    import { fixtures } from 'clerk-emulator/testing';
    const test = base.extend(fixtures);
    test('token', async ({ emulator, signedInAs }) => {
      const { id, token } = signedInAs({ email: 'ada@example.com' });
      expect(JSON.parse(atob(token.split('.')[1])).sub).toBe(id);
      expect((await fetch(emulator.variables.CLERK_API_URL)).status).toBe(401);
    });`;
  await writeFile(path.join(folder, 'token.test.mjs'), program);
  const vitest = path.join(folder, 'node_modules/vitest/vitest.mjs');
  const { stdout } = await execute(
    process.execPath,
    [vitest, 'run', '--root', folder, '--testTimeout', '60000'],
    { cwd: folder },
  );
  expect(stdout).toMatch(/1 passed.*1 passed/s);
});
