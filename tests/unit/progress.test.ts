import { afterEach, expect, test, vi } from 'vitest';
import { shown } from '../../commands/command';
import { showProgress } from '../../commands/progress';

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

test.each([
  [false, ['500 users, 100 a second, note\n', '1000 users, 100 a second, note\n', 'one failed\n']],
  [
    true,
    [
      ...Array.from({ length: 12 }, (_, index) => `${(index + 1) * 100} users, 100 a second, note`),
      'one failed\n',
      '',
    ],
  ],
])(
  'The progress is one line on a terminal, and otherwise a new line every 5 s (terminal: %s)',
  (isTTY, lines) => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const written: string[] = [];
    vi.spyOn(process, 'stderr', 'get').mockReturnValue(
      Object.assign(Object.create(process.stderr), {
        isTTY,
        write: (chunk: string) => written.push(chunk) > 0,
      }),
    );
    const progress = showProgress('users', 120);
    for (let second = 1; second <= 12; second += 1) {
      vi.advanceTimersByTime(1_000);
      progress.at(second * 100, ', note');
    }
    progress.say('one failed');
    progress.end();
    expect(written.join('')).toBe(lines.map((line) => (isTTY ? `\r\x1b[2K${line}` : line)).join(''));
  },
);

test.each([
  ['user_2abc', 'user_2abc'],
  ['two\nlines', '"two\\nlines"'],
  ['\u001b[2J', '"\\u001b[2J"'],
  ['right‮left\u0085', '"right?left?"'],
])(
  'The commands print an id without control and format characters, and any other id unchanged: %j',
  (id, text) => {
    expect(shown(id)).toBe(text);
  },
);
