import { expect, test } from 'vitest';
import { shown } from '../../commands/command';
import { showProgress } from '../../commands/progress';

/** Returns the progress output of a command that expects 3,000 users. It processes 100 users a second and ends after 12 s. */
function written(isTTY: boolean): string {
  let text = '';
  let time = 0;
  const stream = {
    isTTY,
    write(chunk: string | Uint8Array) {
      text += chunk;
      return true;
    },
  };
  const progress = showProgress('users', stream, () => time);
  progress.expect(3_000);
  for (let second = 1; second <= 12; second += 1) {
    time += 1_000;
    progress.at(second * 100);
  }
  progress.say('one failed');
  progress.end();
  return text;
}

test('On a terminal, the progress is one line that is updated every second. It shows the rate and the remaining time', () => {
  const text = written(true);
  expect(text.split('\r\x1b[2K').slice(1)).toEqual([
    ...Array.from(
      { length: 12 },
      (_, index) =>
        `${((index + 1) * 100).toLocaleString('en-US')} of about 3,000 users, 100 a second, ${29 - index} s left`,
    ),
    'one failed\n',
    '',
  ]);
});

test('If the output is not a terminal, the progress is a new line every 5 s', () => {
  expect(written(false)).toBe(
    '500 of about 3,000 users, 100 a second, 25 s left\n1,000 of about 3,000 users, 100 a second, 20 s left\none failed\n',
  );
});

test.each([
  ['user_2abc', 'user_2abc'],
  ['two\nlines', '"two\\nlines"'],
  ['\u001b[2J', '"\\u001b[2J"'],
  ['right‮left\u0085', '"right?left?"'],
])(
  'shown() escapes or replaces control and format characters of an id, and returns any other id unchanged: %j',
  (id, text) => {
    expect(shown(id)).toBe(text);
  },
);
