import { afterAll, afterEach, expect } from 'vitest';
import { validateResponse } from '../harness/openapi';
import { watchResponses } from '../harness/requests';

// Checks the responses that the request helpers of a test receive. If lib/api/document.ts covers the path of the request, it must
// describe the status and the body of the response.

const errors = new Set<string>();

watchResponses((response) => {
  const error = validateResponse(response);
  if (error !== undefined) errors.add(error);
});

function expectNoErrors(): void {
  const found = [...errors];
  errors.clear();
  expect(found, 'responses that do not match lib/api/document.ts').toEqual([]);
}

afterEach(expectNoErrors);
afterAll(expectNoErrors);
