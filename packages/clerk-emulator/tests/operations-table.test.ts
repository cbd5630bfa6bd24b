import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { describeDifferences } from '../src/testing/specification/differences';
import { startProvider } from './helpers/emulator';
import { operationsTable, replaceSection } from './helpers/operations-table';
import { stopAfterTest } from './helpers/stop';

test('The generated section of the README (`npm run emulator:operations`) lists the current operations and the current differences from Clerk', async () => {
  const { operations } = stopAfterTest(await startProvider());
  const section = `${operationsTable(operations)}\n${describeDifferences()}`;
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  await expect(replaceSection(readme, section)).toMatchFileSnapshot('../README.md');
});

test('operationsTable() throws an error with the name of a route that has no description and is not part of the Clerk API specification', () => {
  expect(() => operationsTable(['GET /v1/unknown'])).toThrow('GET /v1/unknown');
});

test('replaceSection() throws if the text has no generated section', () => {
  expect(() => replaceSection('# clerk-emulator', '')).toThrow('generated section');
});
