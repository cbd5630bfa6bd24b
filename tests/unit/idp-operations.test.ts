import { expect, test } from 'vitest';
import { operationsTable } from '../../dev/idp/operations';
import { describeDifferences } from '../harness/clerk-schemas/differences';
import { startProvider } from '../harness/identity-provider';
import { stopAfterTest } from '../vitest/stop-after-all';

test('dev/idp/operations.md lists the operations and differences of the emulator (update: npm run idp:operations)', async () => {
  const { operations } = stopAfterTest(await startProvider());
  const page = `${operationsTable(operations)}\n${describeDifferences()}`;
  await expect(page).toMatchFileSnapshot('../../dev/idp/operations.md');
});

test('The table of operations rejects a route without a description', () => {
  expect(() => operationsTable(['GET /v1/unknown'])).toThrow('GET /v1/unknown');
});
