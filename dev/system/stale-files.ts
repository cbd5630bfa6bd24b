import { lstatSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';

const ageMilliseconds = 24 * 3600 * 1000;

/**
 * Removes the entries of `folder` that killed processes have left behind. An entry is removed if its name starts with `prefix`,
 * the current user owns it and it was last modified more than a day ago. Skips entries that cannot be removed. Never throws.
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
      // Another process has removed the entry, or this process lacks the permission to remove the entry.
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
