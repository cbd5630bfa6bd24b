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

/** The sections that a text refers to: one, or several that are separated by commas; a comment may break the line. */
function referredTo(text: string): string[] {
  const references = text.matchAll(/\bcontract[\s*/]+(\d+(?:\.\d+)*(?:,[\s*/]+\d+(?:\.\d+)*)*)/gi);
  return [...references].flatMap(([, numbers = '']) => numbers.match(/\d+(?:\.\d+)*/g) ?? []);
}

test('every section that the code refers to is in the contract', () => {
  const files = [...sources, 'middleware.ts', 'instrumentation.ts', 'prisma/schema.prisma', 'SECURITY.md'];
  const references = files.flatMap((file) =>
    referredTo(readFileSync(file, 'utf8')).map((section) => ({ file, section })),
  );
  expect(references.length).toBeGreaterThan(20);
  expect(references.filter(({ section }) => !sections.includes(section))).toEqual([]);
});

test('no number of a section is given twice', () => {
  expect(sections.length).toBeGreaterThan(20);
  expect(new Set(sections).size).toBe(sections.length);
});

const rows = [...contract.matchAll(/^\| (\d[\d., ]*) \| (.*tests\/.*) \|$/gm)];

test('every section that is not divided has a row with the tests that show it', () => {
  const whole = sections.filter((number) => !sections.some((other) => other.startsWith(`${number}.`)));
  const shown = rows.flatMap(([, numbers = '']) => numbers.split(', '));
  expect(shown.toSorted()).toEqual(whole.toSorted());
});

test('the tests that it names are there', () => {
  const named = contract.match(/\btests\/[\w./-]+/g) ?? [];
  expect(named.length).toBeGreaterThan(rows.length);
  expect(named.filter((file) => !existsSync(file))).toEqual([]);
});
