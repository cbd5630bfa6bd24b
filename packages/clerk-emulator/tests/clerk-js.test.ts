import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { prefetchClerkJs } from '../src/clerk-js';
import { startProvider } from './helpers/emulator';
import { sendRequest } from './helpers/requests';
import { stopAfterAll } from './helpers/stop';
import { temporaryFolder } from './helpers/temporary-folder';

const folder = temporaryFolder();
const cache = join(folder, 'cache');
await mkdir(join(cache, 'clerk-js-6.34.1'), { recursive: true });
await writeFile(join(cache, 'clerk-js-6.34.1', 'clerk.browser.js'), 'script()');
await writeFile(join(cache, 'clerk-js-6.34.1', '10_chunk_6.34.1.js'), 'chunk()');
await writeFile(join(cache, 'secret.js'), 'secret');
const provider = stopAfterAll(await startProvider({ clerkJsFolder: cache }));
afterEach(() => vi.unstubAllEnvs());

/** Replaces npm with a script that runs `code` instead of a download. In `code`, `into` is the folder for the tarball. */
async function fakeNpm(name: string, code: string): Promise<void> {
  const script = join(folder, `npm-${name}.mjs`);
  await writeFile(
    script,
    `const into = process.argv[process.argv.indexOf('--pack-destination') + 1];\n${code}`,
  );
  vi.stubEnv('npm_execpath', script);
}

/** Requests a path without normalizing it and returns the status. */
const rawStatus = async (path: string) => (await sendRequest('GET', provider.url + path)).status;

test('Every version of clerk-js gets the same scripts, of which only those named by a version are immutable', async () => {
  for (const version of ['6', '6.34.1', '6.0.0-canary.1']) {
    const entry = await fetch(`${provider.url}/npm/@clerk/clerk-js@${version}/dist/clerk.browser.js`);
    expect(await entry.text()).toBe('script()');
    expect(entry.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    expect(entry.headers.get('cache-control')).toBe('no-cache');
  }
  const chunk = await fetch(`${provider.url}/npm/@clerk/clerk-js@6/dist/10_chunk_6.34.1.js`);
  expect(chunk.headers.get('cache-control')).toContain('immutable');
});

test('A path to a missing file or outside the folder of the clerk-js scripts gets a 400 or a 404', async () => {
  for (const path of [
    '/npm/@clerk/clerk-js@6/dist/../secret.js',
    '/npm/@clerk/clerk-js@6/dist/..%2fsecret.js',
    '/npm/@clerk/clerk-js@6/dist/..%2F..%2Fsecret.js',
    '/npm/@clerk/clerk-js@6/dist/..\\secret.js',
    '/npm/@clerk/clerk-js@..%2f/dist/../../secret.js',
    '/npm/@clerk/clerk-js@6/dist/none.js',
    '/npm/@clerk/clerk-js@6/dist/',
    '/npm/@clerk/other@6/dist/clerk.browser.js',
    '/npm/',
  ]) {
    expect([400, 404], path).toContain(await rawStatus(path));
  }
});

test('A malformed request path gets a 4xx response, and the emulator keeps running', async () => {
  expect(String(await rawStatus('//'))).toMatch(/^4/);
  expect(await rawStatus('/v1/users')).toBe(401);
});

test('A tarball whose checksum is not the pinned one is rejected and removed', async () => {
  const target = join(folder, 'tampered');
  await fakeNpm(
    'tampered',
    `import { writeFileSync } from 'node:fs'; writeFileSync(into + '/clerk.tgz', 'something else');`,
  );
  await expect(prefetchClerkJs(target)).rejects.toThrow(/@clerk\/.*sha512 is not the pinned one/);
  expect(await readdir(target)).toEqual([]);
});

test('A failed download has a message of one line, and the next call downloads again', async () => {
  const target = join(folder, 'offline');
  await fakeNpm(
    'offline',
    `console.error('npm error code E404\\nnpm error 404 not there'); process.exit(1);`,
  );
  const failure = await prefetchClerkJs(target).catch((error: unknown) => error);
  expect(String(failure)).toMatch(
    /could not be downloaded \(npm error 404 not there\)\. Check that "npm view @clerk/,
  );
  expect(String(failure)).not.toContain('\n');
  await fakeNpm('again', `console.error('npm error 503 later'); process.exit(1);`);
  await expect(prefetchClerkJs(target)).rejects.toThrow(/503 later/);
});
