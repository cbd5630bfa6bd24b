import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll } from 'vitest';

/** Creates an empty folder that is removed after the last test of the file. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'clerk-emulator-tests-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
