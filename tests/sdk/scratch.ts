import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { withoutServiceVariables } from '../harness/build';

const execute = promisify(execFile);

/** One version of each package of the SDK. */
export interface SdkVersions {
  readonly '@clerk/nextjs': string;
  readonly '@clerk/backend': string;
}

/** Files and folders that a copy of the service needs to run the tests. */
const SOURCES = ['lib', 'dev', 'tests', 'prisma', 'middleware.ts', 'package.json', 'tsconfig.json'];

const Package = z.object({ dependencies: z.record(z.string(), z.string()) });

/** Returns the versions of the SDK packages that package.json pins. */
export function pinnedVersions(): SdkVersions {
  const { dependencies } = Package.parse(JSON.parse(readFileSync('package.json', 'utf8')));
  return {
    '@clerk/nextjs': dependencies['@clerk/nextjs'] ?? '',
    '@clerk/backend': dependencies['@clerk/backend'] ?? '',
  };
}

const npm = async (args: readonly string[], cwd = '.') =>
  (await execute('npm', args, { cwd, env: withoutServiceVariables(), timeout: 120_000 })).stdout;

const Versions = z.union([z.array(z.string()), z.string().transform((version) => [version])]);
const numbersOf = (version: string) => version.split('.').map(Number);

function compareVersions(one: string, other: string): number {
  const [left, right] = [numbersOf(one), numbersOf(other)];
  return (
    left.map((number, index) => number - (right[index] ?? 0)).find((difference) => difference !== 0) ?? 0
  );
}

/**
 * Returns the published versions of a package that are newer than `pinned` and have the major version of `pinned`. The newest
 * version is first. Omits prereleases.
 */
export async function newerVersions(name: string, pinned: string): Promise<string[]> {
  const published = Versions.parse(JSON.parse(await npm(['view', name, 'versions', '--json'])));
  return published
    .filter((version) => /^\d+\.\d+\.\d+$/.test(version) && numbersOf(version)[0] === numbersOf(pinned)[0])
    .filter((version) => compareVersions(version, pinned) > 0)
    .toSorted(compareVersions)
    .reverse();
}

/**
 * Installs the SDK into a folder. Does not install the SDK's peer dependencies, because `addService` links the packages of the
 * checkout. Rejects if the registry lacks one of the packages.
 */
export async function installSdk(folder: string, versions: SdkVersions): Promise<void> {
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ private: true }));
  const options = ['--no-save', '--no-package-lock', '--ignore-scripts', '--legacy-peer-deps'];
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error'];
  const packages = Object.entries(versions).map(([name, version]) => `${name}@${version}`);
  await npm(['install', '--prefix', folder, ...options, ...quiet, ...packages], folder);
}

/** Copies the SDK that is installed in the checkout (the versions in package-lock.json) to a folder. */
export function copyInstalledSdk(folder: string): void {
  cpSync('node_modules/@clerk', path.join(folder, 'node_modules', '@clerk'), { recursive: true });
}

/**
 * Creates a link in the folder `to` for each package that `from` contains and `to` lacks. Skips the SDK (@clerk). If both
 * folders contain a scope, such as @types, does the same in the folders of the scope.
 */
function linkMissing(from: string, to: string): void {
  for (const name of readdirSync(from)) {
    const [source, target] = [path.join(from, name), path.join(to, name)];
    if (name.startsWith('.') || name === '@clerk') continue;
    if (!existsSync(target)) symlinkSync(source, target, 'junction');
    else if (name.startsWith('@')) linkMissing(source, target);
  }
}

/**
 * Copies the service into a folder that contains an SDK, and links the other packages of the checkout. Node.js then resolves
 * every import of the SDK to the SDK in that folder.
 */
export function addService(folder: string): void {
  for (const source of SOURCES) cpSync(source, path.join(folder, source), { recursive: true });
  // In a route, Next.js resolves `server-only` to an empty module. Node.js would load the package itself, which throws.
  const serverOnly = path.join(folder, 'node_modules', 'server-only');
  cpSync('node_modules/server-only', serverOnly, { recursive: true });
  cpSync(path.join(serverOnly, 'empty.js'), path.join(serverOnly, 'index.js'));
  linkMissing(path.resolve('node_modules'), path.join(folder, 'node_modules'));
}

/** Replaces a string in every module of the SDK in a folder. Returns the number of changed files. */
export function renameInSdk(folder: string, name: string, replacement: string): number {
  const sdk = path.join(folder, 'node_modules', '@clerk');
  const modules = readdirSync(sdk, { recursive: true, encoding: 'utf8' }).filter((file) =>
    /\.m?js$/.test(file),
  );
  let changed = 0;
  for (const module of modules) {
    const file = path.join(sdk, module);
    const text = readFileSync(file, 'utf8');
    if (!text.includes(name)) continue;
    writeFileSync(file, text.replaceAll(name, replacement));
    changed += 1;
  }
  return changed;
}
