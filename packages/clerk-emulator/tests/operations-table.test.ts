import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { SECRET_KEY, startForTest } from './helpers/emulator';
import { bearer } from './helpers/requests';

const TABLE = /(<!-- operations -->\n)[\s\S]*(<!-- end -->)/;
/** The headers of a request to each API. */
const APIS = { 'Frontend API': {}, 'Backend API': bearer(SECRET_KEY) };

/** Returns the table of the README: each path with its methods in each API. */
async function operationsTable(url: string, operations: readonly string[]): Promise<string> {
  const rows = new Map<string, string[][]>([['', Object.keys(APIS).map((api) => [api])]]);
  for (const operation of operations) {
    const [method = '', path = ''] = operation.split(' ');
    const row = rows.get(path) ?? [[], []];
    for (const [index, headers] of Object.values(APIS).entries()) {
      // The authorization server ignores the headers. It is part of the Frontend API.
      if (index === 1 && !path.startsWith('/v1/')) continue;
      const response = await fetch(url + path, { method, headers, redirect: 'manual' });
      const body = await response.text();
      if (!/operation_not_emulated|authentication_invalid/.test(body)) row[index]?.push(method);
    }
    rows.set(path, row);
  }
  const width = Math.max(...[...rows.keys()].map((path) => path.length));
  const lines = [...rows]
    .sort()
    .map(([path, [frontend = [], backend = []]]) =>
      `${path.padEnd(width)}  ${frontend.join(',').padEnd(20)}  ${backend.join(',')}`.trimEnd(),
    );
  return `\`\`\`\n${lines.join('\n')}\n\`\`\`\n`;
}

test('The table of operations in the README is up to date (`--update` writes it)', async () => {
  const { url, operations } = await startForTest();
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  expect(readme).toMatch(TABLE);
  const table = await operationsTable(url, operations);
  const updated = readme.replace(TABLE, (_, start, end) => `${start}${table}${end}`);
  await expect(updated).toMatchFileSnapshot('../README.md');
});
