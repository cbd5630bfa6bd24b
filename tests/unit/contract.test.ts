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

/** References such as "contract 5.2, 5.3" and "sections 4.2 and 6.1 of docs/contract.md". They may contain line breaks of comments. */
const REFERENCES = [
  /\bcontract[\s*/]+(\d+(?:\.\d+)*(?:,[\s*/]+\d+(?:\.\d+)*)*)/gi,
  /\bsections?[\s*/]+(\d+(?:\.\d+)*(?:[\s*/]+and[\s*/]+\d+(?:\.\d+)*)?)[\s*/]+(?:of|in)[\s*/]+docs\/contract\.md/gi,
];

/** Returns the sections that a text refers to. */
function referredTo(text: string): string[] {
  const references = REFERENCES.flatMap((pattern) => [...text.matchAll(pattern)]);
  return references.flatMap(([, numbers = '']) => numbers.match(/\d+(?:\.\d+)*/g) ?? []);
}

test('The contract has every section that the code refers to', () => {
  const files = [...sources, 'middleware.ts', 'instrumentation.ts', 'prisma/schema.prisma', 'SECURITY.md'];
  const references = files.flatMap((file) =>
    referredTo(readFileSync(file, 'utf8')).map((section) => ({ file, section })),
  );
  expect(references.length).toBeGreaterThan(20);
  expect(references.filter(({ section }) => !sections.includes(section))).toEqual([]);
});

test('The section numbers of the contract are unique', () => {
  expect(sections.length).toBeGreaterThan(20);
  expect(new Set(sections).size).toBe(sections.length);
});

const rows = [...contract.matchAll(/^- (\d[\d., ]*): (.*tests\/.*)$/gm)];

test('The contract lists the tests of every section that has no subsections', () => {
  const whole = sections.filter((number) => !sections.some((other) => other.startsWith(`${number}.`)));
  const shown = rows.flatMap(([, numbers = '']) => numbers.split(', '));
  expect(shown.toSorted()).toEqual(whole.toSorted());
});

test('The tests that the contract lists exist', () => {
  const named = contract.match(/\btests\/[\w./-]+/g) ?? [];
  expect(named.length).toBeGreaterThan(rows.length);
  expect(named.filter((file) => !existsSync(file))).toEqual([]);
});
