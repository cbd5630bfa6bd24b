const LINE_EVERY_MS = 5_000;
const REDRAW_EVERY_MS = 200;

const count = (value: number) => value.toLocaleString('en-US');

/** The time left, as people say it. */
function timeLeft(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s left`;
  return seconds < 5_400 ? `${Math.round(seconds / 60)} min left` : `${(seconds / 3_600).toFixed(1)} h left`;
}

/** How far something has come, on standard error: one line that changes on a terminal, now and then a line elsewhere. */
export interface Progress {
  /** So many will have to be done in this run. */
  expect(users: number): void;
  /** So many are done in this run. */
  at(done: number): void;
  /** A line of its own. */
  say(line: string): void;
  end(): void;
}

/** Starts the clock. */
export function showProgress(
  stream: Pick<NodeJS.WriteStream, 'isTTY' | 'write'> = process.stderr,
  now = () => performance.now(),
): Progress {
  let total: number | undefined;
  const begun = now();
  let drawnAt = begun;
  const clear = () => stream.isTTY && stream.write('\r\x1b[2K');
  return {
    expect(users) {
      total = users;
    },
    at(done) {
      const time = now();
      if (time - drawnAt < (stream.isTTY ? REDRAW_EVERY_MS : LINE_EVERY_MS)) return;
      drawnAt = time;
      const rate = done / ((time - begun) / 1000);
      const rest = total === undefined ? '' : `, ${timeLeft(Math.max(total - done, 0) / rate)}`;
      const of = total === undefined ? '' : ` of about ${count(total)}`;
      const line = `${count(done)}${of} users, ${count(Math.round(rate))} a second${rest}`;
      stream.write(stream.isTTY ? `\r\x1b[2K${line}` : `${line}\n`);
    },
    say(line) {
      clear();
      stream.write(`${line}\n`);
    },
    end: () => void clear(),
  };
}
