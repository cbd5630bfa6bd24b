import { lstatSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';

const ageMilliseconds = 24 * 3600 * 1000;

/**
 * Removes the entries of a folder that start with `prefix`, belong to this user and have not been modified for a day.
 * Killed processes leave such entries. Never throws, and skips entries that it cannot remove.
 */
export function removeStaleFiles(folder: string, prefix: string): void {
  for (const name of listFolder(folder)) {
    if (!name.startsWith(prefix)) continue;
    const entry = path.join(folder, name);
    try {
      const { mtimeMs, uid } = lstatSync(entry);
      const isOurs = process.getuid === undefined || process.getuid() === uid;
      if (isOurs && Date.now() - mtimeMs > ageMilliseconds) rmSync(entry, { recursive: true });
    } catch {
      // Another process has removed the entry, or its permissions forbid the removal.
    }
  }
}

function listFolder(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
