/**
 * Imported by a process under test (NODE_OPTIONS=--import): its clock is then ahead by the milliseconds that the file
 * CLOCK_OFFSET_FILE holds, or stands still if that says `at` and a time. Timers run as ever.
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
