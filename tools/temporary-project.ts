import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  cpSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { endProcess, killOnExit } from '../dev/system/processes';
import { removeStaleFiles } from '../dev/system/stale-files';

/**
 * Creates the folder `to` with a hard link to each file of the folder `from`. A symbolic link to `from` would not
 * suffice, because a build does not follow a symbolic link to a folder outside of the project. Copies a file if a hard link is
 * not possible.
 */
export function linkFiles(from: string, to: string): void {
  mkdirSync(to);
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [path.join(from, entry.name), path.join(to, entry.name)];
    if (entry.isDirectory()) linkFiles(source, target);
    else if (entry.isSymbolicLink()) cpSync(source, target, { verbatimSymlinks: true });
    else linkOrCopy(source, target);
  }
}

function linkOrCopy(source: string, target: string): void {
  try {
    linkSync(source, target);
  } catch {
    // For example, the temporary folder is on another file system.
    copyFileSync(source, target);
  }
}

/** Copies the files of this checkout that git does not ignore. */
export function copyFiles(folder: string): void {
  const options = ['--cached', '--others', '--exclude-standard', '--deduplicate', '-z'];
  const files = execFileSync('git', ['ls-files', ...options], { encoding: 'utf8', maxBuffer: 2 ** 24 });
  for (const file of files.split('\0').filter(Boolean)) {
    if (lstatSync(file, { throwIfNoEntry: false })) cpSync(file, path.join(folder, file));
  }
}

/** Copies the files of this checkout, as `copyFiles` does, and links its packages. */
export function copyCheckout(folder: string): void {
  copyFiles(folder);
  linkFiles('node_modules', path.join(folder, 'node_modules'));
}

/** Id of the process group of the running step, negative as `process.kill` expects it. */
let running: number | undefined;

/**
 * Runs a command in a new process group, so that a signal reaches all its processes. Prints the command and how long it took.
 * Resolves with the exit code.
 */
export async function runStep(
  [command, ...args]: readonly [string, ...string[]],
  cwd: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<unknown> {
  console.log(`\n$ ${command} ${args.join(' ')}`);
  const startedAt = performance.now();
  const child = spawn(command, args, { cwd, env, detached: true, stdio: ['ignore', 'inherit', 'inherit'] });
  if (child.pid === undefined) return 1;
  running = -child.pid;
  const cancelKill = killOnExit(running, 'SIGTERM');
  const [code] = await once(child, 'exit');
  cancelKill();
  running = undefined;
  console.log(`${Math.round((performance.now() - startedAt) / 1000)} s`);
  return code;
}

/**
 * Runs `work` in a new folder, which is removed at the end. After SIGINT or SIGTERM, stops the running step, removes the folder
 * and exits. The name of the folder starts with `prefix`.
 */
export async function inTemporaryFolder(
  prefix: string,
  work: (folder: string) => Promise<void>,
): Promise<void> {
  removeStaleFiles(os.tmpdir(), prefix);
  const folder = mkdtempSync(path.join(os.tmpdir(), prefix));
  const remove = () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, async () => {
      if (running !== undefined) await endProcess(running, [{ signal: 'SIGINT', milliseconds: 15_000 }]);
      remove();
      process.exit(130);
    });
  }
  try {
    await work(folder);
  } finally {
    remove();
  }
}
