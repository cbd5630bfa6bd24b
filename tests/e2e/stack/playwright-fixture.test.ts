import { expect, test } from 'vitest';
import { runSignUps } from '../../harness/playwright-host/host';

test('Two Playwright workers that share an emulator sign up their own users', async () => {
  const { expected, unexpected, flaky, skipped, tests } = await runSignUps(4);
  expect({ expected, unexpected, flaky, skipped }, JSON.stringify(tests)).toEqual({
    expected: 18,
    unexpected: 0,
    flaky: 0,
    skipped: 0,
  });
});
