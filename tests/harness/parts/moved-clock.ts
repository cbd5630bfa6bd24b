import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type ManualClock, timers } from 'clerk-emulator/testing';

/** One clock for the identity provider and for the service's processes. */
export interface MovedClock extends ManualClock {
  /** The processes' clock stands still at a time, until it goes on. */
  stand(at: number): void;
  go(): void;
  /** For the service's processes. */
  readonly environment: Readonly<Record<string, string>>;
  stop(): void;
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
    ...timers(now, (at) => move(at - now())),
    stand: (at) => write(`at ${at}`),
    go: () => move(0),
    environment: {
      NODE_OPTIONS: `--import=${new URL('./clock-ahead.mjs', import.meta.url).href}`,
      CLOCK_OFFSET_FILE: file,
    },
    stop: () => rmSync(folder, { recursive: true, force: true }),
  };
}
