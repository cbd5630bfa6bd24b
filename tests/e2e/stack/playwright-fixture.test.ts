import { expect, test } from 'vitest';
import { runPlaywrightHost } from '../../harness/playwright-host/host';

test('Two Playwright workers that share an emulator sign up their own users, without a form', async () => {
  // Each worker runs four sign-ups and one repeated sign-in.
  const { expected, unexpected, flaky, skipped, report } = await runPlaywrightHost(4);
  expect({ expected, unexpected, flaky, skipped }, report).toEqual({
    expected: 10,
    unexpected: 0,
    flaky: 0,
    skipped: 0,
  });
});
