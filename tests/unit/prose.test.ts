import { expect, test } from 'vitest';
import { findProse } from '../../tools/prose';

const found = (file: string, text: string) => findProse(file, text).map(({ line, found }) => [line, found]);

test('If a comment contains a phrase to avoid, the prose check reports the line, the phrase and the plain alternative', () => {
  const source = [
    'const a = 1;',
    '/**',
    ' * Returns the value. It waits while work is',
    ' * under',
    ' * way.',
    ' */',
  ];
  expect(findProse('a.ts', source.join('\n'))).toEqual([
    { line: 4, found: 'under way', write: 'in flight, running' },
  ]);
  // The prose check also reads this file. Without this variable, it would read part of the string below as a comment.
  const comment = '//';
  expect(found('a.ts', `const a = 1; ${comment} Runs it anew.\nconst url = 'http://anew';`)).toEqual([
    [1, 'anew'],
  ]);
});

test('The prose check reports a test title that contains a phrase to avoid', () => {
  const title = 'Nobody gets an id';
  expect(found('a.test.ts', `test('${title}', () => {});`)).toEqual([[1, 'Nobody']]);
});

test('The prose check searches paragraphs, list items and table cells of Markdown for phrases to avoid, but not headings', () => {
  const page = [
    '# A gate',
    '',
    'It is here.',
    'It is no event.',
    '',
    '- What it returns.',
    '',
    '| a | the answer |',
  ];
  expect(found('a.md', page.join('\n'))).toEqual([
    [4, 'is no event'],
    [6, 'What it returns'],
    [8, 'answer'],
  ]);
});

test('The prose check ignores code, link targets, questions and plain sentences', () => {
  const page = [
    '`answer` and [a page](answer.md).',
    '',
    '```',
    'anew',
    '```',
    '',
    'What if it fails? There is no limit.',
  ];
  expect(found('a.md', page.join('\n'))).toEqual([]);
  expect(found('a.ts', "const anew = 'the answer';")).toEqual([]);
});
