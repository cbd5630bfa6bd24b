import { copyFileSync, cpSync, linkSync, mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';

/** Creates a hard link to each file. A build does not follow a symbolic link to a folder outside of the project. */
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
    // The temporary folder is on another file system.
    copyFileSync(source, target);
  }
}
