import { mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { removeLeftovers } from '../../dev/system/leftovers';
import { temporaryFolder } from '../vitest/temporary-folder';

const folder = temporaryFolder();

const HOUR = 3600;

function make(name: string, hoursOld: number): void {
  mkdirSync(path.join(folder, name));
  writeFileSync(path.join(folder, name, 'content'), '');
  const time = Date.now() / 1000 - hoursOld * HOUR;
  utimesSync(path.join(folder, name), time, time);
}

test('of the entries with the prefix those older than a day go, and nothing else does', () => {
  make('.part-old', 25);
  make('.part-young', 23);
  make('whole-old', 25);
  removeLeftovers(folder, '.part-');
  expect(readdirSync(folder).sort()).toEqual(['.part-young', 'whole-old']);
});

test('a folder that is not there has no leftovers', () => {
  expect(() => removeLeftovers(path.join(folder, 'none'), '')).not.toThrow();
});
