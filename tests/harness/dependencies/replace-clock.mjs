/**
 * Replaces `Date` in a process that imports this module (NODE_OPTIONS=--import). The variable CLOCK_OFFSET_FILE is the path
 * of a file. If the file contains a number, `Date` adds this number of milliseconds to the real time. If the file contains `at`
 * and a number, `Date` stands still at this number of milliseconds since 1970. Timers are not affected.
 */
import { readFileSync } from 'node:fs';

const file = process.env['CLOCK_OFFSET_FILE'] ?? '';
const RealDate = Date;
const now = () => {
  const [first, second] = readFileSync(file, 'utf8').split(' ');
  return first === 'at' ? Number(second) : RealDate.now() + Number(first);
};

globalThis.Date = class extends RealDate {
  constructor(...parts) {
    super(...(parts.length === 0 ? [now()] : parts));
  }

  static now() {
    return now();
  }
};
