import type { RetryOptions } from '#lib/base/retry';
import { print } from './command';

const LINE_EVERY_MS = 5_000;
const REDRAW_EVERY_MS = 200;
/** Moves the cursor of a terminal to the start of the line and erases the line. */
const ERASE_LINE = '\r\x1b[2K';

/** Shows the progress of a command on standard error, and the retries of its requests and statements. */
export interface Progress {
  /** Sets how many items the command has processed. Updates the line of a terminal, or prints a line at most once in 5 s. */
  at(done: number, note?: string): void;
  /** Prints a message on its own line. */
  say(line: string): void;
  /** Removes the progress line of a terminal. */
  end(): void;
  readonly retryOptions: RetryOptions;
}

/** Creates a progress display. `unit` is the name of the items. Retries pause for `seconds` in total. */
export function showProgress(unit: string, seconds: number): Progress {
  const { stderr } = process;
  const startedAt = performance.now();
  let lastAt = startedAt;
  const end = () => void (stderr.isTTY && stderr.write(ERASE_LINE));
  const say = (line: string) => {
    end();
    print(line, stderr);
  };
  return {
    at(done, note = '') {
      const now = performance.now();
      if (now - lastAt < (stderr.isTTY ? REDRAW_EVERY_MS : LINE_EVERY_MS)) return;
      lastAt = now;
      const line = `${done} ${unit}, ${Math.round((done * 1000) / (now - startedAt))} a second${note}`;
      stderr.write(stderr.isTTY ? `${ERASE_LINE}${line}` : `${line}\n`);
    },
    say,
    end,
    retryOptions: { seconds, onWait: (reason, wait) => say(`${reason}. Retry in ${wait} s`) },
  };
}
