import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { variables } from '#lib/base/env';

// README.md, .env.example and the contract repeat for readers what the schema of the environment says.

const contract = readFileSync('docs/contract.md', 'utf8');
const sectionOf = (heading: string, page = contract) =>
  page.split(/^##+ /m).find((text) => text.startsWith(heading)) ?? '';
test('README.md, .env.example and the contract describe each variable of the service once', () => {
  const names = Object.keys(variables.shape);
  const example = readFileSync('.env.example', 'utf8').match(/^[A-Z_]+(?==)/gm);
  expect(example?.toSorted()).toEqual(names.toSorted());
  const rowsOf = (text: string) => text.split('\n').filter((line) => /^(?:\||- )/.test(line));
  const readme = rowsOf(sectionOf('Configuration', readFileSync('README.md', 'utf8')));
  const formats = rowsOf(sectionOf('8.2 Environment'));
  const count = (lines: string[], name: string) =>
    lines.filter((line) => line.includes(`\`${name}\``)).length;
  const isLocal = (name: string) =>
    formats.some((line) => line.includes(name) && line.includes('local stack'));
  expect(names.filter((name) => count(readme, name) !== (isLocal(name) ? 0 : 1))).toEqual([]);
  const withoutFormat = names.filter((name) => count(formats, name) !== 1);
  expect(withoutFormat).toEqual(['IDP_WEBHOOK_SIGNING_SECRET', 'KV_REST_API_URL', 'KV_REST_API_TOKEN']);
});
