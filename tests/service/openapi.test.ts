import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openApiDocument, paths } from '#lib/api/document';
import { validateResponse } from '../harness/openapi';
import { bearer, send, signatureHeaders, tokenFor } from '../harness/requests';
import { sharedService } from '../vitest/shared-service';

const service = sharedService();

test('GET /openapi.json returns the document without a credential', async () => {
  const response = await send(`${service.url}/openapi.json`);
  expect(response).toMatchObject({ status: 200, body: openApiDocument });
});

const text = fc.string({ unit: 'binary' });
const credential = fc.oneof(
  fc.constant({}),
  fc.constant(bearer(tokenFor(service.idp, 'user_generated'))),
  text.map((word) => bearer(word.replace(/[^\x21-\x7e]/g, ''))),
);
const body = fc.oneof(
  fc.json(),
  text,
  fc.jsonValue().map((id) => JSON.stringify({ identityProviderUserId: id })),
  fc.jsonValue().map((id) => JSON.stringify({ type: 'user.created', data: { id } })),
);
const request = fc.record({
  method: fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'),
  path: fc.constantFrom(...Object.keys(paths)),
  query: fc.oneof(
    fc.constant(''),
    fc.webQueryParameters().map((parameters) => `?${parameters}`),
  ),
  credential,
  body,
  isSigned: fc.boolean(),
});

test('A generated request to a documented path gets a documented response, and no 5xx except the 503 of /health/ready', async () => {
  await fc.assert(
    fc.asyncProperty(request, async ({ method, path, query, credential, body, isSigned }) => {
      const response = await send(`${service.url}${path}${query}`, {
        method,
        headers: { ...credential, ...(isSigned ? signatureHeaders(body) : {}) },
        ...(/^(?:GET|HEAD)$/.test(method) ? {} : { body }),
      });
      const text = typeof response.body === 'string' ? response.body : JSON.stringify(response.body);
      expect(validateResponse({ ...response, method, pathname: path, text })).toBeUndefined();
      if (path !== '/health/ready') expect(response.status).toBeLessThan(500);
    }),
    { numRuns: 100, interruptAfterTimeLimit: 120_000, markInterruptAsFailure: true },
  );
});
