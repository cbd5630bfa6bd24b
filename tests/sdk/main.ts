import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { messageOf } from '../../dev/system/errors';
import { killOnExit } from '../../dev/system/processes';
import { removeStaleFiles } from '../../dev/system/stale-files';
import { withoutServiceVariables } from '../harness/build';
import {
  addService,
  copyInstalledSdk,
  installSdk,
  newerVersions,
  pinnedVersions,
  renameInSdk,
  type SdkVersions,
} from './scratch';

/**
 * `npm run check:sdk`: runs the contract tests (tests/sdk/contract) with the pinned versions of the provider's SDK, and with
 * the newest versions that npm can install. Exits with 1 if a check fails. Needs the npm registry.
 *
 * Also tests a copy of the pinned SDK in which a header is renamed. The contract tests of the headers must detect this, so they
 * must fail. With this copy, the middleware must still pass webhooks and health checks to their routes, and must throw an error
 * for API requests.
 *
 * `--pinned`: tests only the pinned versions and the copy. Does not need the npm registry.
 * `--break-header`: runs only the contract tests, with the copy in which the header is renamed, and prints their failures.
 */
const PINNED = '--pinned';
const BREAK_HEADER = '--break-header';
/** Maximum number of versions of a package that the check tries to install. */
const MAX_ATTEMPTS = 5;
const HEADER = 'x-clerk-auth-status';
const PREFIX = 'identity-link-tests-sdk-';

const say = (line: string) => process.stdout.write(`${line}\n`);

removeStaleFiles(os.tmpdir(), PREFIX);
const parent = mkdtempSync(path.join(os.tmpdir(), PREFIX));
process.once('exit', () => rmSync(parent, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

const describeVersions = (versions: SdkVersions) =>
  Object.entries(versions)
    .map(([name, version]) => `${name} ${version}`)
    .join(', ');

const VITEST = path.join(
  path.dirname(createRequire(import.meta.url).resolve('vitest/package.json')),
  'vitest.mjs',
);

interface TestRun {
  readonly folder: string;
  readonly versions: SdkVersions;
  readonly project: 'contract' | 'without-headers';
  /** Part of the name of a test file. Default: all files. */
  readonly file?: string;
  readonly output?: 'inherit' | 'ignore';
}

/** Runs a Vitest project of tests/sdk/vitest.config.ts in a folder. Resolves with true if all of its tests pass. */
async function runTests({ folder, versions, project, file, output = 'inherit' }: TestRun): Promise<boolean> {
  const options = ['--root', folder, '--config', 'tests/sdk/vitest.config.ts', '--project', project];
  const child = spawn(process.execPath, [VITEST, 'run', ...options, ...(file ? [file] : [])], {
    cwd: folder,
    env: {
      ...withoutServiceVariables(),
      CHECK_SDK_NEXTJS: `@clerk/nextjs@${versions['@clerk/nextjs']}`,
      CHECK_SDK_BACKEND: `@clerk/backend@${versions['@clerk/backend']}`,
    },
    stdio: ['ignore', output, output],
  });
  const release = child.pid === undefined ? undefined : killOnExit(child.pid, 'SIGTERM');
  const [code] = await once(child, 'exit');
  release?.();
  return code === 0;
}

const failures: string[] = [];

function expectTrue(passed: boolean, what: string): void {
  say(`${passed ? 'Passed' : 'Failed'}: ${what}`);
  if (!passed) failures.push(what);
}

/** Returns a folder with the pinned SDK, as package-lock.json installs it. */
function pinnedCopy(name: string): string {
  const folder = path.join(parent, name);
  copyInstalledSdk(folder);
  addService(folder);
  return folder;
}

/** Returns the line of npm's output that names the error. For an error that is not from npm, returns its message. */
const npmError = (error: unknown) =>
  /^npm error (?!code ).+$/m.exec(messageOf(error))?.[0] ?? messageOf(error);

/**
 * Installs the newest version of the package `name` that npm can install. Tries at most `MAX_ATTEMPTS` versions. Returns
 * undefined if npm can install none of them, or if no version is newer than the version in `given`.
 */
async function installNewest(
  name: keyof SdkVersions,
  given: SdkVersions,
): Promise<{ folder: string; versions: SdkVersions } | undefined> {
  const candidates = await newerVersions(name, given[name]);
  for (const version of candidates.slice(0, MAX_ATTEMPTS)) {
    const versions = { ...given, [name]: version };
    const folder = path.join(parent, `${path.basename(name)}-${version}`);
    try {
      await installSdk(folder, versions);
    } catch (error) {
      say(`Skipped: ${describeVersions(versions)} cannot be installed. ${npmError(error)}`);
      continue;
    }
    addService(folder);
    return { folder, versions };
  }
  say(`Skipped: no version of ${name} that is newer than ${given[name]} can be installed.`);
  return undefined;
}

async function checkContract(folder: string, versions: SdkVersions): Promise<void> {
  const passed = await runTests({ folder, versions, project: 'contract' });
  expectTrue(passed, `contract tests with ${describeVersions(versions)}`);
}

/** Returns a copy of the pinned SDK in which one header has another name. */
function copyWithRenamedHeader(pinned: SdkVersions): string {
  const folder = pinnedCopy('renamed-header');
  const changed = renameInSdk(folder, HEADER, `${HEADER}-renamed`);
  say(`Renamed ${HEADER} in ${changed} files of a copy of ${describeVersions(pinned)}.`);
  return folder;
}

async function checkRenamedHeader(versions: SdkVersions): Promise<void> {
  const folder = copyWithRenamedHeader(versions);
  const contract = { project: 'contract', file: 'contract/headers', output: 'ignore' } as const;
  const passed = await runTests({ folder, versions, ...contract });
  expectTrue(!passed, 'the contract tests fail if a header is renamed');
  const works = await runTests({ folder, versions, project: 'without-headers' });
  expectTrue(
    works,
    'without the header, API requests fail, but webhooks and health checks pass the middleware',
  );
}

async function checkPinned(pinned: SdkVersions): Promise<void> {
  await checkContract(pinnedCopy('pinned'), pinned);
  await checkRenamedHeader(pinned);
}

async function checkNewest(pinned: SdkVersions): Promise<void> {
  const backend = await installNewest('@clerk/backend', pinned);
  if (backend) await checkContract(backend.folder, backend.versions);
  const nextjs = await installNewest('@clerk/nextjs', backend?.versions ?? pinned);
  if (nextjs) await checkContract(nextjs.folder, nextjs.versions);
}

const [option, ...more] = process.argv.slice(2);
if (more.length > 0 || ![undefined, PINNED, BREAK_HEADER].includes(option)) {
  process.stderr.write(`Usage: npm run check:sdk [-- ${PINNED} | ${BREAK_HEADER}]\n`);
  process.exit(2);
}
const pinned = pinnedVersions();
try {
  if (option === BREAK_HEADER) await checkContract(copyWithRenamedHeader(pinned), pinned);
  else await checkPinned(pinned);
  if (option === undefined) await checkNewest(pinned);
} catch (error) {
  failures.push(npmError(error));
}
say(
  failures.length === 0 ? 'All checks passed.' : `Failed:\n${failures.map((each) => `  ${each}`).join('\n')}`,
);
process.exitCode = failures.length === 0 ? 0 : 1;
