import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { startForTest } from './helpers/emulator';

test('The matrix of the README was written for the present operations (node matrix.mjs writes it)', async () => {
  const { operations } = await startForTest();
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  expect(readme).toContain(`<!-- matrix of ${operations.length} operations -->`);
});
