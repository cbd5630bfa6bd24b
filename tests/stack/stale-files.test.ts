import { mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { removeStaleFiles } from '../../dev/system/stale-files';
import { temporaryFolder } from '../vitest/temporary-folder';

const folder = temporaryFolder();

const HOUR = 3600;

/** Creates a folder whose last change was the given number of hours ago. */
function make(name: string, hoursOld: number): void {
  mkdirSync(path.join(folder, name));
  writeFileSync(path.join(folder, name, 'content'), '');
  const time = Date.now() / 1000 - hoursOld * HOUR;
  utimesSync(path.join(folder, name), time, time);
}

test('removeStaleFiles removes only entries that have the prefix and are older than a day', () => {
  make('.part-old', 25);
  make('.part-young', 23);
  make('whole-old', 25);
  removeStaleFiles(folder, '.part-');
  expect(readdirSync(folder).sort()).toEqual(['.part-young', 'whole-old']);
});

test('removeStaleFiles does not throw if the folder does not exist', () => {
  expect(() => removeStaleFiles(path.join(folder, 'none'), '')).not.toThrow();
});
