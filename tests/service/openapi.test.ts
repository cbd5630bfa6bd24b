import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EXAMPLE, openApiDocument, paths } from '#lib/api/document';
import { DOCUMENTED, validateResponse } from '../harness/openapi';
import {
  bearer,
  deliver,
  HOOK,
  ME,
  me,
  type ParsedResponse,
  REGISTER,
  register,
  send,
  signatureHeaders,
  tokenFor,
} from '../harness/requests';
import { sharedService } from '../vitest/shared-service';

const service = sharedService();
const { pool } = service.database;
const token = (user: string) => tokenFor(service.idp, user);

const { userId, identityProviderUserId } = EXAMPLE;
const events = paths[HOOK].post.requestBody.content['application/json'].examples;

const submit = (body: unknown) => register(service.url, token('user_caller'), body);
const submitId = (id: unknown) => submit({ identityProviderUserId: id });
const get = (path: string) => send(`${service.url}${path}`);
const event = (value: unknown) => deliver(service.url, JSON.stringify(value));

/** Replaces the user of the examples. The service would give the user a random internal id. */
async function replaceExampleUser(): Promise<void> {
  await pool.query('DELETE FROM users WHERE identity_provider_user_id = $1', [identityProviderUserId]);
  await pool.query('INSERT INTO users VALUES ($1, $2)', [userId, identityProviderUserId]);
}

/** Functions that provoke the documented responses. A key consists of an operation, a status and the name of an example. */
const provocations: Readonly<Record<string, () => Promise<ParsedResponse>>> = {
  [`GET ${ME} 200 context`]: async () => {
    await replaceExampleUser();
    return me(service.url, token(identityProviderUserId));
  },
  [`GET ${ME} 401 Unauthorized`]: () => get(ME),
  [`POST ${REGISTER} 200 link`]: async () => {
    await replaceExampleUser();
    return submitId(identityProviderUserId);
  },
  [`POST ${REGISTER} 201 link`]: async () => {
    await pool.query('DELETE FROM users WHERE identity_provider_user_id = $1', [identityProviderUserId]);
    const { body, ...response } = await submitId(identityProviderUserId);
    return { ...response, body: { ...Object(body), userId } };
  },
  [`POST ${REGISTER} 400 The request body must be JSON in UTF-8`]: () => submit('{'),
  [`POST ${REGISTER} 400 identityProviderUserId must be a string`]: () => submitId(7),
  [`POST ${REGISTER} 401 Unauthorized`]: () => send(`${service.url}${REGISTER}`, { method: 'POST' }),
  [`POST ${REGISTER} 409 User is forgotten`]: async () => {
    await service.database.markForgotten('user_forgotten');
    return submitId('user_forgotten');
  },
  [`POST ${REGISTER} 413 Payload too large`]: () => submit(' '.repeat(16 * 1024 + 1)),
  [`POST ${HOOK} 200 acknowledgment`]: () => event(events['created']?.value),
  [`POST ${HOOK} 400 Missing body`]: () => deliver(service.url, ''),
  [`POST ${HOOK} 400 Invalid webhook signature`]: () => deliver(service.url, '{}', {}),
  [`POST ${HOOK} 400 Invalid webhook event`]: () => event({}),
  [`POST ${HOOK} 413 Payload too large`]: () => deliver(service.url, ' '.repeat(256 * 1024 + 1), {}),
  'GET /health/alive 200 alive': () => get('/health/alive'),
};

/**
 * Without the examples of /health/ready, a failing database and REGISTER_OWN_ID_ONLY, which other files check: health,
 * unit/health, database-outage and in-process/register.
 */
const examples = DOCUMENTED.flatMap(({ method, pathname, status, examples }) =>
  Object.entries(examples).map(([name, { value }]) => {
    const key: string = `${method} ${pathname} ${status} ${name}`;
    return [key, status, value] as const;
  }),
).filter(([key, status]) => status < 500 && status !== 403 && !key.includes('/health/ready'));

test.each(examples)(
  'The response of the service equals its example in the OpenAPI document: %s',
  async (name, status, body) => {
    const provoke = provocations[name];
    if (!provoke) throw new Error('No test provokes this example: add a function to `provocations`');
    const response = await provoke();
    expect({ status: response.status, body: response.body }).toEqual({ status, body });
  },
);

test('GET and HEAD of /openapi.json return the document without a credential', async () => {
  expect(await get('/openapi.json')).toMatchObject({ status: 200, body: openApiDocument });
  expect(await send(`${service.url}/openapi.json`, { method: 'HEAD' })).toMatchObject({
    status: 200,
    body: '',
  });
});

const text = fc.string({ unit: 'binary' });
const credential = fc.oneof(
  fc.constant({}),
  fc.constant(bearer(token('user_generated'))),
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
