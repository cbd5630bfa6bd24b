import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { cost, freePlanEnds, usage } from '../../bench/scale/compute';
import { INPUTS } from '../../bench/scale/inputs';
import { withComputedSections } from '../../bench/scale/page';

test('docs/scale.md contains the tables that withComputedSections() computes', async () => {
  const page = readFileSync('docs/scale.md', 'utf8');
  await expect(withComputedSections(page)).toMatchFileSnapshot('../../docs/scale.md');
});

test('withComputedSections() rejects a page that lacks a computed section', () => {
  expect(() => withComputedSections('# How it scales\n')).toThrow('does not contain the section "usage"');
});

describe('cost model', () => {
  test('The cost model counts two function calls for a request, because the middleware is a separate function', () => {
    const { requests, invocations } = usage(1_000);
    expect(requests).toBe(900_300);
    expect(invocations).toBe(1_800_600);
  });

  test('The cost model computes that the function calls of the free plan suffice for 555 daily users', () => {
    expect(freePlanEnds().invocations).toBe(555);
  });

  test('The cost model bills the memory of an instance until its idle database connections close', () => {
    const { memory, memoryWithDefaultIdle } = usage(1_000);
    // The model assumes 3,020 statements a day for 30 days. The service closes a database connection that was idle for 5 s. The
    // default of pg is 10 s. With this default, an instance of 2 GB would run for 5 s longer after each statement. The unit is
    // GB-hours.
    expect(memoryWithDefaultIdle - memory).toBeCloseTo((3_020 * 5 * 30 * 2) / 3_600, 6);
  });

  test('The cost model bills at most one instance for idle connections', () => {
    expect(usage(100_000).memory).toBe(24 * 30 * 2);
  });

  test('The cost model chooses the cheapest fixed plan of the KV store that is sufficient for the busiest second', () => {
    expect(cost(10_000_000).store).toBe(800);
  });

  test('The cost model chooses the pay-as-you-go plan of the KV store if it is cheaper than a fixed plan', () => {
    expect(cost(1_000).store).toBeCloseTo(1.98, 6);
  });

  test('The cost model does not charge CDN requests that the Pro plan includes', () => {
    expect(cost(1_000).cdn).toBe(0);
  });

  test('The cost model charges CDN requests and CDN traffic at the on-demand prices if no flat-rate plan of the CDN is large enough', () => {
    const requests = 9_003_000_000 - 10_000_000;
    const gigabytes = (9_003_000_000 * INPUTS.exchangeBytes.value) / 1e9 - 1_000;
    expect(cost(10_000_000).cdn).toBeCloseTo((requests / 1e6) * 2 + gigabytes * 0.15, 4);
  });

  test('The cost model charges only the price of the Pro seat if the metered usage is within the amount that the seat includes', () => {
    expect(cost(1_000).vercel).toBe(20);
  });
});

test('Every input of the cost model has a source and a date', () => {
  for (const { source, date } of Object.values(INPUTS)) {
    expect(source).not.toBe('');
    expect(date).toMatch(/^20\d\d-\d\d-\d\d$/);
  }
});
