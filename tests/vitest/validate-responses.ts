import { afterAll, afterEach, expect } from 'vitest';
import { validateResponse } from '../harness/openapi';
import { watchResponses } from '../harness/responses';
import { record } from './documented-responses';

// Checks the responses that the request helpers of a test receive. If lib/api/openapi.json covers the path of the request, the
// document must describe the status, the headers and the body of the response.

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
