import { afterAll, afterEach, expect } from 'vitest';
import { validateResponse } from '../harness/openapi';
import { watchResponses } from '../harness/requests';

// Checks the responses that the request helpers of a test receive. If lib/api/openapi.json covers the path of the request, the
// document must describe the status and the body of the response.

const errors = new Set<string>();

watchResponses((response) => {
  const error = validateResponse(response);
  if (error !== undefined) errors.add(error);
});

function expectNoErrors(): void {
  const found = [...errors];
  errors.clear();
  expect(found, 'responses that do not match lib/api/openapi.json').toEqual([]);
}

afterEach(expectNoErrors);
afterAll(expectNoErrors);
