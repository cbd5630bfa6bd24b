import fc from 'fast-check';
import { expect, test } from 'vitest';
import * as z from 'zod/mini';
import document from '../../lib/api/openapi.json';
import { validateResponse } from '../harness/openapi';
import { bearer, cookie, HOOK, ME, REGISTER, send, signatureHeaders, tokenFor } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const REQUESTS = 1_000;
/** Maximum time for the requests and for the search for a simpler failing request. It is shorter than the test timeout. */
const LIMIT_MS = 120_000;

const service = stopAfterAll(await startTestService());

/** The keywords that the schemas of request bodies use. */
const Schema = z.looseObject({
  $ref: z.optional(z.string()),
  type: z.optional(z.enum(['object', 'string'])),
  properties: z._default(z.record(z.string(), z.unknown()), {}),
  required: z._default(z.array(z.string()), []),
  minLength: z.optional(z.number()),
  maxLength: z.optional(z.number()),
});

// Code points other than lone surrogates and NUL. The document excludes NUL only in a description, not in its schemas.
const unit = fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }).filter((point) => point !== '\0');

/** Generates values of a schema, including values of the maximum length. */
function valuesOf(given: unknown): fc.Arbitrary<unknown> {
  const { $ref, type, properties, required, minLength, maxLength } = Schema.parse(given);
  if ($ref !== undefined) {
    return valuesOf(
      Object.entries(document.components.schemas).find(([name]) => $ref.endsWith(`/${name}`))?.[1],
    );
  }
  if (type === 'string') {
    return fc.string({
      unit,
      ...(minLength ? { minLength } : {}),
      ...(maxLength ? { maxLength, size: 'max' } : {}),
    });
  }
  if (type === 'object') {
    const known = fc.record(
      Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, valuesOf(schema)])),
      { requiredKeys: required },
    );
    const names = fc.string().filter((name) => !(name in properties) && name !== '__proto__');
    return fc
      .tuple(fc.dictionary(names, fc.jsonValue()), known)
      .map(([further, own]) => ({ ...further, ...own }));
  }
  return fc.jsonValue();
}

const text = (value: unknown) => JSON.stringify(value);
const bodyOf = (path: typeof REGISTER | typeof HOOK) =>
  valuesOf(document.paths[path].post.requestBody.content['application/json'].schema).map(text);
/**
 * Bodies of events that the webhook accepts. It accepts `user.created` only if the id is valid, missing, null or empty. The
 * schema does not express this.
 */
const event = fc.oneof(
  bodyOf(HOOK).filter((body) => JSON.parse(body).type !== 'user.created'),
  valuesOf(document.components.schemas.IdentityProviderUserId).map((id) =>
    text({ type: 'user.created', data: { id } }),
  ),
  fc
    .constantFrom({}, { id: null }, { id: '' }, undefined)
    .map((data) => text({ type: 'user.created', data })),
);

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
}

const token = tokenFor(service.idp, 'user_generated');
const credential = fc.constantFrom<Record<string, string>>(bearer(token), cookie(token));
const requestId = fc.oneof(
  fc.constant({}),
  fc.string({ minLength: 1, maxLength: 80 }).map((id) => ({ 'x-request-id': id.trim() })),
);
const query = fc.oneof(
  fc.constant(''),
  fc.webQueryParameters().map((parameters) => `?${parameters}`),
);

/** Requests that conform to the OpenAPI document. */
const conforming = fc.oneof(
  fc.record({
    method: fc.constantFrom('GET', 'HEAD'),
    path: fc.constantFrom(ME, '/health/alive', '/health/ready', '/openapi.json'),
    headers: credential,
  }),
  fc.record({
    method: fc.constant('POST'),
    path: fc.constant(REGISTER),
    headers: credential,
    body: bodyOf(REGISTER),
  }),
  event.map((body) => ({ method: 'POST', path: HOOK, headers: signatureHeaders(body), body })),
);

const noCredential = fc.oneof(
  fc.constant<Record<string, string>>({}),
  fc.string().map((word) => bearer(word.replace(/[^\x21-\x7e]/g, ''))),
  fc.constant(bearer(tokenFor(service.idp, ''))),
  fc.constant(bearer(tokenFor(service.idp, 'user_late', { exp: 1 }))),
);
const anyBody = fc.oneof(
  fc.json(),
  fc.string({ unit: 'binary' }),
  fc.jsonValue().map((identityProviderUserId) => text({ identityProviderUserId })),
  fc.jsonValue().map((id) => text({ type: 'user.created', data: { id } })),
  fc.constantFrom('', '{', ' '.repeat(16_385), '"\\ud800"', '{"identityProviderUserId":"\\u0000"}'),
);
const signature = fc
  .tuple(fc.constantFrom('id', 'timestamp', 'signature'), fc.string())
  .map(([part, word]) => ({
    ...signatureHeaders('{}'),
    [`svix-${part}`]: word.replace(/[^\x21-\x7e]/g, ''),
  }));

/** Requests that may violate the OpenAPI document. */
const arbitrary = fc
  .record({
    method: fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'),
    path: fc
      .tuple(
        fc.constantFrom(...Object.keys(document.paths)),
        fc.oneof(
          { weight: 5, arbitrary: fc.constant('') },
          fc.webSegment().map((segment) => `/${segment}`),
        ),
      )
      .map((parts) => parts.join('')),
    headers: fc.oneof(credential, noCredential, signature),
    body: anyBody,
  })
  .map(({ body, ...sent }): Sent => (/^(?:GET|HEAD)$/.test(sent.method) ? sent : { ...sent, body }));

/** Returns true if the service accepts this request id from a client and returns it in the response. */
const isValidRequestId = (id: string | undefined) => id !== undefined && /^[A-Za-z0-9_.:-]{1,64}$/.test(id);

async function sendAndValidate({ method, path, headers, body }: Sent) {
  const response = await send(`${service.url}${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body }),
  });
  const { pathname } = new URL(path, service.url);
  const text = typeof response.body === 'string' ? response.body : JSON.stringify(response.body);
  return { ...response, error: validateResponse({ ...response, method, pathname, text })?.error };
}

/** Checks the responses to generated requests. To repeat a failure, pass the seed and path from its message to `fc.assert`. */
const checkResponses = (requests: fc.Arbitrary<Sent>, check: (status: number) => void) =>
  fc.assert(
    fc.asyncProperty(requests, requestId, query, async (sent, id, search) => {
      const given = { ...sent, path: `${sent.path}${search}`, headers: { ...sent.headers, ...id } };
      const { status, headers, error } = await sendAndValidate(given);
      expect(error).toBeUndefined();
      check(status);
      if (isValidRequestId(given.headers['x-request-id']) && headers.has('x-request-id')) {
        expect(headers.get('x-request-id')).toBe(given.headers['x-request-id']);
      }
    }),
    { numRuns: REQUESTS / 2, interruptAfterTimeLimit: LIMIT_MS, markInterruptAsFailure: true },
  );

test('A generated request that conforms to the OpenAPI document succeeds with a documented response', async () => {
  await checkResponses(conforming, (status) => expect([200, 201]).toContain(status));
});

test('A generated request that may violate the OpenAPI document gets a documented response', async () => {
  await checkResponses(arbitrary, (status) => expect(status).toBeLessThan(500));
});
