import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { CHECK_TYPES, copyFiles, EXAMPLE_GROUPS, run } from './temporary-project';

// Checks the types of the examples, in a copy of this checkout, because their models change the client of Prisma.
for (const examples of EXAMPLE_GROUPS) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'identity-link-examples-'));
  try {
    copyFiles(folder);
    symlinkSync(path.resolve('node_modules'), path.join(folder, 'node_modules'));
    for (const example of examples) cpSync(path.join('examples', example), folder, { recursive: true });
    await run(CHECK_TYPES, folder, process.env);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
