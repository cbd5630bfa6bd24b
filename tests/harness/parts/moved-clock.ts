import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Clock } from '../../../dev/idp/instance/clock';

/** A clock whose timers fire when it is told to go on. */
export interface ManualClock extends Clock {
  /** Goes on to the next timer that is at least so far away, fires it, and says how far that was. */
  advance(atLeast?: number): number;
}

/** One clock for the identity provider and for the service's processes. */
export interface MovedClock extends ManualClock {
  /** The processes' clock stands still at a time, until it goes on. */
  stand(at: number): void;
  go(): void;
  /** For the service's processes. */
  readonly environment: Readonly<Record<string, string>>;
  stop(): void;
}

/** A clock for this process that stands still until it is told to go on. Starts with the real time. */
export function manualClock(): ManualClock {
  let time = Date.now();
  return timersOf(
    () => time,
    (at) => {
      time = at;
    },
  );
}

function timersOf(now: () => number, goTo: (at: number) => void): ManualClock {
  const timers = new Map<() => void, number>();
  return {
    now,
    after(milliseconds, callback) {
      timers.set(callback, now() + milliseconds);
      return () => timers.delete(callback);
    },
    advance(atLeast = 0) {
      const started = now();
      const [next] = [...timers]
        .filter(([, at]) => at - started >= atLeast)
        .sort(([, one], [, other]) => one - other);
      if (next === undefined) throw new Error('No timer is set');
      const [callback, at] = next;
      timers.delete(callback);
      goTo(at);
      callback();
      return at - started;
    },
  };
}

/** A clock that moves on with the real time, and is put forward when it is told to go on. */
export function movedClock(): MovedClock {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'identity-link-tests-clock-'));
  const file = path.join(folder, 'offset');
  let offset = 0;
  const write = (content: string) => {
    writeFileSync(`${file}.new`, content);
    renameSync(`${file}.new`, file);
  };
  const move = (milliseconds: number) => {
    offset += milliseconds;
    write(String(offset));
  };
  move(0);
  const now = () => Date.now() + offset;
  return {
    ...timersOf(now, (at) => move(at - now())),
    stand: (at) => write(`at ${at}`),
    go: () => move(0),
    environment: {
      NODE_OPTIONS: `--import=${new URL('./clock-ahead.mjs', import.meta.url).href}`,
      CLOCK_OFFSET_FILE: file,
    },
    stop: () => rmSync(folder, { recursive: true, force: true }),
  };
}
