import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const contract = readFileSync('docs/contract.md', 'utf8');
const sections = [...contract.matchAll(/^#{2,3} (\d+(?:\.\d+)?)\b/gm)].map(([, number = '']) => number);

const sources = ['app', 'lib', 'tests'].flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file) && !file.startsWith('generated'))
    .map((file) => path.join(folder, file)),
);

/** Returns the section numbers that a text refers to. A reference has the form `docs/contract.md, 4.1 and 5.2`. */
function referredTo(text: string): string[] {
  const references = text.matchAll(/contract\.md,[\s*/]+(\d+(?:\.\d+)?)(?: and (\d+(?:\.\d+)?))?/g);
  return [...references].flatMap(([, ...numbers]) => numbers.filter((number) => number !== undefined));
}

test('docs/contract.md has every section that the code refers to', () => {
  const files = [...sources, 'middleware.ts', 'instrumentation.ts', 'prisma/schema.prisma'];
  const references = files.flatMap((file) =>
    referredTo(readFileSync(file, 'utf8')).map((section) => ({ file, section })),
  );
  expect(references.length).toBeGreaterThan(15);
  expect(references.filter(({ section }) => !sections.includes(section))).toEqual([]);
});

test('The section numbers of docs/contract.md are unique', () => {
  expect(sections.length).toBeGreaterThan(20);
  expect(new Set(sections).size).toBe(sections.length);
});

/** Lines of the contract that list the tests of one or more sections: `- 5.2, 8.1: tests/…`. */
const rows = [...contract.matchAll(/^- (\d[\d., ]*): (.*tests\/.*)$/gm)];

test('In docs/contract.md, each section that has no subsections occurs exactly once in the list of tests', () => {
  const whole = sections.filter((number) => !sections.some((other) => other.startsWith(`${number}.`)));
  const shown = rows.flatMap(([, numbers = '']) => numbers.split(', '));
  expect(shown.toSorted()).toEqual(whole.toSorted());
});

test('Each test file or folder that docs/contract.md names exists', () => {
  const named = contract.match(/\btests\/[\w./-]+/g) ?? [];
  expect(named.length).toBeGreaterThan(rows.length);
  expect(named.filter((file) => !existsSync(file))).toEqual([]);
});
