import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { access, mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { extract } from 'tar';
import { messageOf } from './errors';

/** The browser SDK and its prebuilt components, as the provider would serve them from its own host. */
const PACKAGES = {
  'clerk-js': {
    version: '6.34.1',
    integrity: 'PcM/x9lzmDU5bQ8jaJjkWYncJbAYL5hlxHG3jkO4SLG39apLqfBuFCaRw27ptIkwRCTJnY+a6Nvml3gk8G1CZA==',
  },
  ui: {
    version: '1.34.0',
    integrity: 'EP6Wcf+iqV5hJRMjfmVSOb7wWEgt2DuUOnR3Yv/ULPdmGgGWa64oc4tB4VfD66z8nXgtXqHEXNNnGURAOfQ7vQ==',
  },
} as const;
type PackageName = keyof typeof PACKAGES;

/** A file of one of the two packages, in whatever version the application's SDK asks for: one is pinned here. */
const SCRIPT_PATH = /^\/npm\/@clerk\/(?<name>clerk-js|ui)@[^/]+\/dist\/(?<file>[\w.-]+\.js)$/;
const FETCH_BOUND_MILLISECONDS = 120_000;
const UNFINISHED = '.fetching-';
const DAY_MILLISECONDS = 24 * 3600 * 1000;
/** By default npm goes on for over a minute after the network is gone, while somebody waits for a page. */
const NPM_OPTIONS = [
  '--ignore-scripts',
  '--loglevel=error',
  '--fetch-retries=1',
  '--fetch-retry-mintimeout=1000',
];

/** Folder of the downloaded scripts, in the usual cache folder of the working directory. */
export const DEFAULT_CLERK_JS_FOLDER = path.resolve('node_modules/.cache/clerk-emulator');

/**
 * Answers a path with a script of the browser SDK, a 404 for one that there is not, or a 503 if the SDK cannot be
 * fetched. Never rejects.
 */
export type ClerkJs = (pathname: string) => Promise<Response>;

/** Serves the browser SDK from a folder, which is filled on the first request. */
export function clerkJsFrom(folder: string): ClerkJs {
  return async (pathname) => {
    const { name, file } = SCRIPT_PATH.exec(pathname)?.groups ?? {};
    if (file === undefined || (name !== 'clerk-js' && name !== 'ui'))
      return new Response(null, { status: 404 });
    try {
      const script = await readFile(path.join(await packageFolder(name, folder), file)).catch(
        () => undefined,
      );
      if (script === undefined) return new Response(null, { status: 404 });
      return new Response(script, { headers: scriptHeaders(name, file) });
    } catch (error) {
      const message = messageOf(error);
      console.error(message);
      return new Response(message, { status: 503 });
    }
  };
}

/**
 * Fetches the browser SDK unless it is there. Rejects, once nothing is under way any more, with one line that says
 * what to do if it cannot be had.
 */
export async function prefetchClerkJs(folder: string = DEFAULT_CLERK_JS_FOLDER): Promise<void> {
  await removeStaleDownloads(folder);
  const fetches = [packageFolder('clerk-js', folder), packageFolder('ui', folder)];
  await Promise.allSettled(fetches);
  await Promise.all(fetches);
}

/** Removes downloads that a killed process left behind more than a day ago. */
async function removeStaleDownloads(folder: string): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  for (const name of names.filter((each) => each.startsWith(UNFINISHED))) {
    const download = path.join(folder, name);
    const modified = await stat(download).then(
      ({ mtimeMs }) => mtimeMs,
      () => Number.NaN, // another process has removed it
    );
    if (Date.now() - modified > DAY_MILLISECONDS) await rm(download, { recursive: true, force: true });
  }
}

const fetching = new Map<string, Promise<string>>();

/** The folder of a package's scripts. Calls at the same time share one fetch, and a failed one is tried again. */
function packageFolder(name: PackageName, folder: string): Promise<string> {
  const target = path.join(folder, `${name}-${PACKAGES[name].version}`);
  const underWay = fetching.get(target);
  if (underWay !== undefined) return underWay;
  const found = access(target)
    .catch(() => fetchPackage(name, folder, target))
    .then(() => target);
  fetching.set(target, found);
  found.catch(() => fetching.delete(target));
  return found;
}

/**
 * Fetches a package into a folder of its own and then renames that folder, so that other processes see all of
 * it or nothing; where two of them fetch at once, the first one's stays.
 */
async function fetchPackage(name: PackageName, folder: string, target: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const temporary = await mkdtemp(path.join(folder, UNFINISHED));
  const removeAtExit = () => rmSync(temporary, { recursive: true, force: true });
  process.once('exit', removeAtExit);
  try {
    const tarball = await packed(name, temporary);
    await requireIntegrity(name, tarball);
    const scripts = path.join(temporary, 'scripts');
    await mkdir(scripts);
    await extract({
      file: tarball,
      cwd: scripts,
      strip: 2,
      filter: (path) => /^package\/dist\/[^/]+\.js$/.test(path),
    });
    await rename(scripts, target).catch(async (error: unknown) => {
      if ((await readdir(target).catch(() => [])).length === 0) throw error;
    });
  } catch (cause) {
    const spec = specOf(name);
    throw new Error(
      `${spec}, which the sign-in pages need, could not be fetched (${reasonOf(cause)}). ` +
        `Check that "npm view ${spec} version" works, then load the page again.`,
      { cause },
    );
  } finally {
    process.off('exit', removeAtExit);
    await rm(temporary, { recursive: true, force: true });
  }
}

/** The tarball as the user's own npm fetches it: with its registry, credentials and proxy. */
async function packed(name: PackageName, into: string): Promise<string> {
  const npmScript = process.env['npm_execpath'];
  const isNpm = npmScript !== undefined && path.basename(npmScript).startsWith('npm');
  const [command, ...prefix] = isNpm ? [process.execPath, npmScript] : ['npm'];
  const fetched = promisify(execFile)(
    command,
    [...prefix, 'pack', specOf(name), '--pack-destination', into, ...NPM_OPTIONS],
    { timeout: FETCH_BOUND_MILLISECONDS, shell: !isNpm && process.platform === 'win32' },
  );
  const killAtExit = () => fetched.child.kill();
  process.once('exit', killAtExit);
  await fetched.finally(() => process.off('exit', killAtExit));
  const tarball = (await readdir(into)).find((file) => file.endsWith('.tgz'));
  if (tarball === undefined) throw new Error('npm fetched nothing');
  return path.join(into, tarball);
}

async function requireIntegrity(name: PackageName, tarball: string): Promise<void> {
  const hash = createHash('sha512')
    .update(await readFile(tarball))
    .digest('base64');
  if (hash !== PACKAGES[name].integrity) throw new Error('its sha512 is not the pinned one');
}

/** Of what npm writes, the line that names the fault. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const lines = cause.message.split('\n');
  return (
    lines.find((line) => /^npm error (?!code |errno |syscall |A complete log)/.test(line)) ??
    lines[0] ??
    cause.name
  );
}

function specOf(name: PackageName): string {
  return `@clerk/${name}@${PACKAGES[name].version}`;
}

/** Only a name that holds the version stays the same for ever. */
function scriptHeaders(name: PackageName, file: string): Record<string, string> {
  const isFixed = file.includes(PACKAGES[name].version);
  return {
    'content-type': 'text/javascript; charset=utf-8',
    'cache-control': isFixed ? 'public, max-age=31536000, immutable' : 'no-cache',
    'x-content-type-options': 'nosniff',
  };
}
