import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';

/**
 * Returns a digest of the installed packages, the version of Node.js, and the given files and folders. Paths are relative to the
 * root of the checkout.
 */
export function sourceDigest(sources: readonly string[]): string {
  const digest = createHash('sha256').update(process.version);
  for (const source of ['node_modules/.package-lock.json', ...sources].toSorted()) {
    const files = statSync(source).isDirectory()
      ? readdirSync(source, { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map(({ parentPath, name }) => path.join(parentPath, name))
          .toSorted()
      : [source];
    for (const file of files) {
      const content = readFileSync(file);
      digest.update(`${file} ${content.length} `).update(content);
    }
  }
  return digest.digest('hex');
}
