import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, lstatSync, mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { startProcess } from '../dev/system/start-process';

/** Examples that work together. */
export const EXAMPLE_GROUPS = [['mcp', 'projects'], ['onboarding', 'profiles'], ['better-auth']];
export const CHECK_TYPES = 'npm run postinstall && npx next typegen && npx tsc --noEmit';

/** Hard-links the files of a folder into a new one, or copies them. A build follows no symbolic link out of its project. */
export function linkFiles(from: string, to: string): void {
  mkdirSync(to);
  // A hard link needs the same file system, and some versions of `cp` make none.
  execFileSync('sh', ['-c', 'cp -al "$0/." "$1" 2>/dev/null || cp -a "$0/." "$1"', from, to]);
}

/** Copies the files of this checkout that git does not ignore, and links the packages that only a workspace has. */
export function copyFiles(folder: string): void {
  const options = ['--cached', '--others', '--exclude-standard', '--deduplicate', '-z'];
  const files = execFileSync('git', ['ls-files', ...options], { encoding: 'utf8', maxBuffer: 2 ** 24 });
  for (const file of files.split('\0').filter(Boolean)) {
    if (lstatSync(file, { throwIfNoEntry: false })) cpSync(file, path.join(folder, file));
  }
  for (const name of readdirSync('packages')) {
    const packages = path.join('packages', name, 'node_modules');
    if (existsSync(packages)) linkFiles(packages, path.join(folder, packages));
  }
}

/** Copies the files of this checkout, as `copyFiles` does, and links its packages. */
export function copyCheckout(folder: string): void {
  copyFiles(folder);
  linkFiles('node_modules', path.join(folder, 'node_modules'));
}

/** Runs a command of a shell. Resolves to its standard output. Rejects with its output if it fails. */
export async function run(command: string, cwd: string, env: NodeJS.ProcessEnv): Promise<string> {
  const { exited, written, output } = startProcess('bash', ['-c', command], { cwd, env, group: true });
  const code = await exited;
  if (code !== 0) throw new Error(`${command}\nfailed with ${code}:\n${output()}`);
  return written.stdout;
}
