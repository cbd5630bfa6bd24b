import { expect, test } from 'vitest';
import { text } from '#lib/api/text';

const Title = text('title', 5);

test.each(['a', 'abcde', ' a ', 'é', '漢字', '👩', '\n'])('A valid text is parsed unchanged: %j', (value) => {
  expect(Title.parse(value)).toBe(value);
});

test.each([
  [undefined, 'title must be a string'],
  [7, 'title must be a string'],
  ['', 'title must not be empty'],
  ['abcdef', 'title must have at most 5 characters'],
  ['a\0b', 'title must be well-formed Unicode without NUL'],
  ['a\ud800', 'title must be well-formed Unicode without NUL'],
])('An invalid text is rejected with a message: %j', (value, message) => {
  expect(Title.safeParse(value).error?.issues[0]?.message).toBe(message);
});
