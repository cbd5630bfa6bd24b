import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll } from 'vitest';

/** Creates an empty folder for a test file and removes it after the tests. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'identity-link-tests-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
