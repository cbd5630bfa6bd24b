import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { operations } from '#lib/api/document';
import { variables } from '#lib/base/env';

// The contract and README.md repeat for readers what the OpenAPI document and the schema of the environment say.

const contract = readFileSync('docs/contract.md', 'utf8');
const sectionOf = (heading: string, page = contract) =>
  page.split(/^##+ /m).find((text) => text.startsWith(heading)) ?? '';
/** Statuses of a guarded route (5.2), and of every route (7). */
const OF_THE_GUARD = ['401', '503'];
const OF_EVERY_ROUTE = ['500'];

test.each(operations.filter(({ path }) => /\/v\d/.test(path)))(
  'The contract names the statuses and messages that the document has for $method $path, and no others',
  ({ method, path, responses, security }) => {
    const [section = ''] = contract.split(/^##+ /m).filter((text) => text.includes(`${method} ${path}\n`));
    const named = new Set(section.match(/\b[2-5]\d\d\b(?! KiB)/g));
    const implied = [...OF_EVERY_ROUTE, ...(section.startsWith('4.2') ? [] : OF_THE_GUARD)];
    expect([...new Set([...named, ...implied])].sort()).toEqual(Object.keys(responses));
    expect(security.length > 0).toBe(true);
    const messages = Object.entries(responses)
      .filter(([status]) => !implied.includes(status) && Number(status) >= 400)
      .flatMap(([, { content }]) => Object.keys(content['application/json'].examples ?? {}));
    const general = sectionOf('7. Errors');
    const unnamed = messages.filter((message) => !section.includes(message) && !general.includes(message));
    // The contract describes the messages about a body, which name the problem.
    expect(unnamed.filter((message) => !/body|identityProviderUserId/.test(message))).toEqual([]);
  },
);

test('README.md and the contract describe each variable of the service once', () => {
  const names = Object.keys(variables.shape);
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
