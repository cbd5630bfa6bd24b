import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Clock } from '../../../dev/idp/instance/clock';

/** A clock whose timers fire only on `advance`. */
export interface ManualClock extends Clock {
  /** Advances to the next timer that is at least this far away, fires it and returns the distance. */
  advance(atLeast?: number): number;
}

/** One clock for the identity provider and for the processes of the service. */
export interface AdjustableClock extends ManualClock {
  /** Stops the clock of the processes at a time. */
  freeze(at: number): void;
  /** Makes the clock of the processes run again. */
  unfreeze(): void;
  /** Variables that make a process use this clock. */
  readonly environment: Readonly<Record<string, string>>;
  stop(): void;
}

/** Returns a clock for this process. It starts at the real time and moves only on `advance`. */
export function manualClock(): ManualClock {
  let time = Date.now();
  return clockWithTimers(
    () => time,
    (at) => {
      time = at;
    },
  );
}

function clockWithTimers(now: () => number, goTo: (at: number) => void): ManualClock {
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

/** Returns a clock that runs with the real time and jumps forward on `advance`. */
export function adjustableClock(): AdjustableClock {
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
    ...clockWithTimers(now, (at) => move(at - now())),
    freeze: (at) => write(`at ${at}`),
    unfreeze: () => move(0),
    environment: {
      NODE_OPTIONS: `--import=${new URL('./replace-clock.mjs', import.meta.url).href}`,
      CLOCK_OFFSET_FILE: file,
    },
    stop: () => rmSync(folder, { recursive: true, force: true }),
  };
}
