import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type ManualClock, timers } from 'clerk-emulator/testing';

/**
 * A clock that the emulator of the identity provider and the processes of the service share. `freeze` and `unfreeze` affect
 * only the processes.
 */
export interface AdjustableClock extends ManualClock {
  /** Sets the clock of the processes to the given time, in milliseconds since 1970, and stops the clock. */
  freeze(at: number): void;
  /** Makes the clock of the processes run again. It then shows the same time as if it had never stopped. */
  unfreeze(): void;
  /** Environment variables that make a process use this clock. */
  readonly environment: Readonly<Record<string, string>>;
  stop(): void;
}

/** Returns a clock that runs at the speed of real time. Each call of `advance` moves the clock forward. */
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
    ...timers(now, (at) => move(at - now())),
    freeze: (at) => write(`at ${at}`),
    unfreeze: () => move(0),
    environment: {
      NODE_OPTIONS: `--import=${new URL('./replace-clock.mjs', import.meta.url).href}`,
      CLOCK_OFFSET_FILE: file,
    },
    stop: () => rmSync(folder, { recursive: true, force: true }),
  };
}
