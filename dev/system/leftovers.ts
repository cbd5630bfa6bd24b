import { lstatSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';

const ageMilliseconds = 24 * 3600 * 1000;

/**
 * Removes what killed processes of this user left in a folder: every entry whose name begins with `prefix` and which
 * nothing was added to for a day. Never throws: what cannot be removed stays.
 */
export function removeLeftovers(folder: string, prefix: string): void {
  for (const name of namesIn(folder)) {
    if (!name.startsWith(prefix)) continue;
    const entry = path.join(folder, name);
    try {
      const { mtimeMs, uid } = lstatSync(entry);
      const isOurs = process.getuid === undefined || process.getuid() === uid;
      if (isOurs && Date.now() - mtimeMs > ageMilliseconds) rmSync(entry, { recursive: true });
    } catch {
      // Another process removes it too, or its rights forbid it.
    }
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
