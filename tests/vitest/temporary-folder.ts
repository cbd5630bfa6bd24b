import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll } from 'vitest';

/** An empty folder of the test file's own, which is removed once its tests have run. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'identity-link-tests-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
