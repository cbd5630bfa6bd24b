import { randomUUID } from 'node:crypto';
import { statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { stateFile } from '../../commands/users/state-file';
import { temporaryFolder } from '../vitest/temporary-folder';

const folder = temporaryFolder();
const state = {
  cursor: { createdAt: 1, seen: [{ id: 'user_1', createdAt: 1 }] },
  figures: { seen: 1, linked: 1, alreadyLinked: 0, forgotten: 0, failed: 0 },
};

test.each([false, true])(
  'Only the owner can read and write the progress file of a backfill (the file existed before: %s)',
  (existed) => {
    const file = path.join(folder, randomUUID());
    if (existed) writeFileSync(file, '', { mode: 0o644 });
    const stored = stateFile(file, 'run');
    stored.write(state);
    expect((statSync(file).mode & 0o777).toString(8)).toBe('600');
    expect(stored.read()).toMatchObject(state);
  },
);
