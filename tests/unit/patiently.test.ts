import { expect, test } from 'vitest';
import { PassingFault, patiently } from '#lib/patiently';

/** Work that fails with one fault after the other, over a clock that only waits move. */
async function waitsOf(seconds: number, faults: readonly unknown[]) {
  let time = 0;
  let attempts = 0;
  const waits: number[] = [];
  const outcome = await patiently(
    {
      seconds,
      now: () => time,
      onWait: (_why, wait) => waits.push(wait),
      sleep: async (milliseconds) => {
        time += milliseconds;
      },
    },
    async () => {
      const fault = faults[attempts];
      attempts += 1;
      if (fault !== undefined) throw fault;
      return 'done';
    },
  ).catch((error: unknown) => error);
  return { outcome, waits };
}

const down = new PassingFault('is down');
const limited = (seconds: number) => new PassingFault('asks for a pause', seconds);
const many = <T>(count: number, fault: T): T[] => Array.from({ length: count }, () => fault);

test('a fault that passes is waited out, longer each time', async () => {
  expect(await waitsOf(60, many(6, down))).toEqual({ outcome: 'done', waits: [0.5, 1, 2, 4, 8, 15] });
});

test('one that does not pass is thrown once patience is over, and no wait goes beyond it', async () => {
  const { outcome, waits } = await waitsOf(20, many(100, down));
  expect(outcome).toBe(down);
  expect(waits.reduce((sum, wait) => sum + wait, 0)).toBeLessThanOrEqual(20);
});

test('a pause is as long as it was asked for, and costs no patience', async () => {
  const faults = [limited(7), limited(30), down, limited(1)];
  expect(await waitsOf(1, faults)).toEqual({ outcome: 'done', waits: [7, 30, 0.5, 1] });
});

test('pauses have bounds: of their length, and of their number', async () => {
  expect((await waitsOf(60, [limited(86_400)])).outcome).toMatchObject({ retryAfterSeconds: 86_400 });
  expect((await waitsOf(60, many(1_000, limited(1)))).waits).toHaveLength(60);
});

test('any other error is thrown at once', async () => {
  const refused = new Error('refused');
  expect(await waitsOf(60, [refused])).toEqual({ outcome: refused, waits: [] });
});
