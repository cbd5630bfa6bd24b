const LINE_EVERY_MS = 5_000;
const REDRAW_EVERY_MS = 200;
/** Moves the cursor of a terminal to the start of the line and erases the line. */
const ERASE_LINE = '\r\x1b[2K';

const count = (value: number) => value.toLocaleString('en-US');

function formatTimeLeft(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s left`;
  return seconds < 5_400 ? `${Math.round(seconds / 60)} min left` : `${(seconds / 3_600).toFixed(1)} h left`;
}

/**
 * Shows the progress of a command in a progress line. On a terminal, updates this line in place. On any other stream, prints a
 * new progress line at most once in 5 s.
 */
export interface Progress {
  /** Sets the approximate number of users that this run will process. */
  expect(users: number): void;
  /** Sets the number of users that this run has processed, and updates or prints the progress line. */
  at(done: number): void;
  /** Prints a message on its own line. On a terminal, the next update draws the progress line again, below the message. */
  say(line: string): void;
  /** Removes the progress line if the stream is a terminal. */
  end(): void;
}

/**
 * Creates a progress display. The displayed rate is the average per second since this call. `unit` is the displayed name of what
 * the command counts.
 */
export function showProgress(
  unit = 'users',
  stream: Pick<NodeJS.WriteStream, 'isTTY' | 'write'> = process.stderr,
  now = () => performance.now(),
): Progress {
  let total: number | undefined;
  const startedAt = now();
  let lastDrawnAt = startedAt;
  const clear = () => stream.isTTY && stream.write(ERASE_LINE);
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
      const line = `${count(done)}${ofTotal} ${unit}, ${count(Math.round(rate))} a second${timeLeft}`;
      stream.write(stream.isTTY ? `${ERASE_LINE}${line}` : `${line}\n`);
    },
    say(line) {
      clear();
      stream.write(`${line}\n`);
    },
    end: () => void clear(),
  };
}
