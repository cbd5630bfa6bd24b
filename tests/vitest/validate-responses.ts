import { afterAll, afterEach, expect } from 'vitest';
import { validateResponse } from '../harness/openapi';
import { watchResponses } from '../harness/responses';
import { record } from './documented-responses';

// Checks that lib/api/openapi.json describes the status, headers and body of every response that a test receives.

const errors = new Set<string>();
const seen = new Set<string>();

watchResponses((response) => {
  const result = validateResponse(response);
  if (result?.error !== undefined) errors.add(result.error);
  if (result?.match === undefined || seen.has(result.match.name)) return;
  const { testPath = '', currentTestName = 'setup' } = expect.getState();
  seen.add(result.match.name);
  record('response', result.match.name, `${testPath.replace(`${process.cwd()}/`, '')} > ${currentTestName}`);
});

function expectNoErrors(): void {
  const found = [...errors];
  errors.clear();
  expect(found, 'responses that do not match lib/api/openapi.json').toEqual([]);
}

afterEach(expectNoErrors);
afterAll(() => {
  record('file', (expect.getState().testPath ?? '').replace(`${process.cwd()}/`, ''));
  expectNoErrors();
});
