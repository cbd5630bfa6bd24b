import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { access, mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { extract } from 'tar';
import { messageOf } from './errors';

/**
 * The npm packages of the browser SDK (`clerk-js`) and of its prebuilt components (`ui`), which version 5 contains. A Clerk
 * instance serves the packages from its own host. `integrity` is the sha512 of the tarball in base64.
 */
const PACKAGES = {
  'clerk-js@5': {
    name: 'clerk-js',
    version: '5.128.0',
    integrity: 'aw8USKnrZVPOqJfp1eKpbaQL+jUYkXJn/v3XdBslfT4jXEUIqkyITmlgY8bA9GqVF7xGcr+m/HJTpgvGbtIvXA==',
  },
  'clerk-js': {
    name: 'clerk-js',
    version: '6.34.1',
    integrity: 'PcM/x9lzmDU5bQ8jaJjkWYncJbAYL5hlxHG3jkO4SLG39apLqfBuFCaRw27ptIkwRCTJnY+a6Nvml3gk8G1CZA==',
  },
  ui: {
    name: 'ui',
    version: '1.34.0',
    integrity: 'EP6Wcf+iqV5hJRMjfmVSOb7wWEgt2DuUOnR3Yv/ULPdmGgGWa64oc4tB4VfD66z8nXgtXqHEXNNnGURAOfQ7vQ==',
  },
} as const;
type PackageName = keyof typeof PACKAGES;

/** Path of a script, such as `/npm/@clerk/ui@1/dist/ui.browser.js`. `PACKAGES` pins the versions, but for 5 of clerk-js. */
const SCRIPT_PATH =
  /^\/npm\/@clerk\/(?<name>clerk-js@5(?=\.|\/)|clerk-js|ui)(?:@?[^/]*)\/dist\/(?<file>[\w.-]+\.js)$/;
const FETCH_TIMEOUT_MS = 120_000;
/** Limits npm to one retry, after a second. By default, the sign-in page would wait for more than a minute without a network. */
const NPM_OPTIONS = [
  '--ignore-scripts',
  '--loglevel=error',
  '--fetch-retries=1',
  '--fetch-retry-mintimeout=1000',
];

/** Default folder of the downloaded scripts. */
export const DEFAULT_CLERK_JS_FOLDER = path.resolve('node_modules/.cache/clerk-emulator');

/** Returns a script, a 404 for an unknown path, or a 503 if the download of its package fails. Never rejects. */
export type ClerkJs = (pathname: string) => Promise<Response>;

/** Serves the browser SDK from a folder. Downloads a package at its first request if the folder does not contain it. */
export function serveClerkJs(folder: string): ClerkJs {
  return async (pathname) => {
    const { name, file } = SCRIPT_PATH.exec(pathname)?.groups ?? {};
    if (file === undefined || !isPackageName(name)) return new Response(null, { status: 404 });
    try {
      const found = path.join(await packageFolder(name, folder), file);
      const script = await readFile(found).catch(() => null);
      return new Response(script, script ? { headers: scriptHeaders(name, file) } : { status: 404 });
    } catch (error) {
      const message = messageOf(error);
      console.error(message);
      return new Response(message, { status: 503 });
    }
  };
}

const isPackageName = (name: string | undefined): name is PackageName => Object.hasOwn(PACKAGES, name ?? '');

/** Downloads clerk-js 6 and its components if necessary. Rejects with a one-line message that says what to do. */
export async function prefetchClerkJs(folder: string = DEFAULT_CLERK_JS_FOLDER): Promise<void> {
  const fetches = [packageFolder('clerk-js', folder), packageFolder('ui', folder)];
  await Promise.allSettled(fetches);
  await Promise.all(fetches);
}

const fetching = new Map<string, Promise<string>>();

/** Returns the folder with the scripts of a package. Concurrent calls share one download. A failed one is repeated. */
function packageFolder(name: PackageName, folder: string): Promise<string> {
  const target = path.join(folder, `${PACKAGES[name].name}-${PACKAGES[name].version}`);
  const inFlight = fetching.get(target);
  if (inFlight !== undefined) return inFlight;
  const found = access(target)
    .catch(() => fetchPackage(name, folder, target))
    .then(() => target);
  fetching.set(target, found);
  found.catch(() => fetching.delete(target));
  return found;
}

/** Downloads a package and moves its scripts to the cache folder at once, so that other processes see all of them or none. */
async function fetchPackage(name: PackageName, folder: string, target: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const temporary = await mkdtemp(path.join(folder, '.fetching-'));
  const removeAtExit = () => rmSync(temporary, { recursive: true, force: true });
  process.once('exit', removeAtExit);
  try {
    const tarball = await packTarball(name, temporary);
    const hash = createHash('sha512').update(await readFile(tarball));
    if (hash.digest('base64') !== PACKAGES[name].integrity)
      throw new Error('its sha512 is not the pinned one');
    const scripts = path.join(temporary, 'scripts');
    await mkdir(scripts);
    const filter = (file: string) => /^package\/dist\/[^/]+\.js$/.test(file);
    await extract({ file: tarball, cwd: scripts, strip: 2, filter });
    await rename(scripts, target).catch(async (error: unknown) => {
      if ((await readdir(target).catch(() => [])).length === 0) throw error;
    });
  } catch (cause) {
    const spec = packageSpec(name);
    throw new Error(
      `The sign-in pages need ${spec}, which could not be downloaded (${describeNpmError(cause)}). ` +
        `Check that "npm view ${spec} version" works, then try again.`,
      { cause },
    );
  } finally {
    process.off('exit', removeAtExit);
    await rm(temporary, { recursive: true, force: true });
  }
}

/** Downloads the tarball of a package with the user's npm, which applies the user's registry, credentials and proxy. */
async function packTarball(name: PackageName, into: string): Promise<string> {
  // A package manager that runs this process sets `npm_execpath` to the path of its own script.
  const npmScript = process.env['npm_execpath'];
  const isNpm = npmScript !== undefined && path.basename(npmScript).startsWith('npm');
  const [command, ...prefix] = isNpm ? [process.execPath, npmScript] : ['npm'];
  const fetched = promisify(execFile)(
    command,
    [...prefix, 'pack', packageSpec(name), '--pack-destination', into, ...NPM_OPTIONS],
    { timeout: FETCH_TIMEOUT_MS, shell: !isNpm && process.platform === 'win32' },
  );
  const killAtExit = () => fetched.child.kill();
  process.once('exit', killAtExit);
  await fetched.finally(() => process.off('exit', killAtExit));
  const tarball = (await readdir(into)).find((file) => file.endsWith('.tgz'));
  if (tarball === undefined) throw new Error('npm did not create a tarball');
  return path.join(into, tarball);
}

/** Returns the line of npm's output that describes the error. Skips the error codes and the path of npm's log. */
function describeNpmError(cause: unknown): string {
  const lines = messageOf(cause).split('\n');
  return (
    lines.find((line) => /^npm error (?!code |errno |syscall |A complete log)/.test(line)) ?? lines[0] ?? ''
  );
}

function packageSpec(name: PackageName): string {
  return `@clerk/${PACKAGES[name].name}@${PACKAGES[name].version}`;
}

/** Lets browsers cache a file permanently if its name contains the version. Browsers must revalidate any other file. */
function scriptHeaders(name: PackageName, file: string): Record<string, string> {
  const isFixed = file.includes(PACKAGES[name].version);
  return {
    'content-type': 'text/javascript; charset=utf-8',
    'cache-control': isFixed ? 'public, max-age=31536000, immutable' : 'no-cache',
    'x-content-type-options': 'nosniff',
  };
}
