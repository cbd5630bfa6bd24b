import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { startForTest } from './helpers/emulator';

const TABLE = /(<!-- operations -->\n)[\s\S]*(<!-- end -->)/;

/** Returns the table of the README: each path with its methods. */
function operationsTable(operations: readonly string[]): string {
  const methods = new Map<string, string[]>();
  for (const operation of operations) {
    const [method = '', path = ''] = operation.split(' ');
    methods.set(path, [...(methods.get(path) ?? []), method]);
  }
  const width = Math.max(...[...methods.keys()].map((path) => path.length));
  const rows = [...methods].sort().map(([path, all]) => `${path.padEnd(width)}  ${all.join(',')}`);
  return `\`\`\`\n${rows.join('\n')}\n\`\`\`\n`;
}

test('The table of operations in the README is up to date (`--update` writes it)', async () => {
  const { operations } = await startForTest();
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  expect(readme).toMatch(TABLE);
  const updated = readme.replace(TABLE, (_, start, end) => `${start}${operationsTable(operations)}${end}`);
  await expect(updated).toMatchFileSnapshot('../README.md');
});
