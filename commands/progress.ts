const LINE_EVERY_MS = 5_000;
const REDRAW_EVERY_MS = 200;

const count = (value: number) => value.toLocaleString('en-US');

function formatTimeLeft(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s left`;
  return seconds < 5_400 ? `${Math.round(seconds / 60)} min left` : `${(seconds / 3_600).toFixed(1)} h left`;
}

/** Shows the progress of a command. Updates one line on a terminal. Prints at most one line in 5 s to any other stream. */
export interface Progress {
  /** Sets the total number of users of this run. */
  expect(users: number): void;
  /** Sets the number of users that this run has processed. */
  at(done: number): void;
  /** Prints a separate line. */
  say(line: string): void;
  /** Removes the progress line from a terminal. */
  end(): void;
}

/** Creates a progress display. The rate, in users a second, counts from this call. */
export function showProgress(
  stream: Pick<NodeJS.WriteStream, 'isTTY' | 'write'> = process.stderr,
  now = () => performance.now(),
): Progress {
  let total: number | undefined;
  const startedAt = now();
  let lastDrawnAt = startedAt;
  const clear = () => stream.isTTY && stream.write('\r\x1b[2K');
  return {
    expect(users) {
      total = users;
    },
    at(done) {
      const time = now();
      if (time - lastDrawnAt < (stream.isTTY ? REDRAW_EVERY_MS : LINE_EVERY_MS)) return;
      lastDrawnAt = time;
      const rate = done / ((time - startedAt) / 1000);
      const timeLeft = total === undefined ? '' : `, ${formatTimeLeft(Math.max(total - done, 0) / rate)}`;
      const ofTotal = total === undefined ? '' : ` of about ${count(total)}`;
      const line = `${count(done)}${ofTotal} users, ${count(Math.round(rate))} a second${timeLeft}`;
      stream.write(stream.isTTY ? `\r\x1b[2K${line}` : `${line}\n`);
    },
    say(line) {
      clear();
      stream.write(`${line}\n`);
    },
    end: () => void clear(),
  };
}
