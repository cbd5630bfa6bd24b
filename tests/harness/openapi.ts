import { Ajv2020 } from 'ajv/dist/2020';
import { openApiDocument, operations } from '#lib/api/document';
import { fieldsOf } from '#lib/core/values';
import type { SeenResponse } from './requests';

/** Statuses that any request can get from the HTTP server or Next.js. The text of the document names them. */
const GENERAL: ReadonlySet<number> = new Set([204, 400, 404, 405, 408, 411, 413, 414, 417, 431]);

/** The responses that the operations of the document list. */
const DOCUMENTED = operations.flatMap(({ method, path, responses }) =>
  Object.entries(responses).map(([status, { content }]) => {
    const { schema, examples = {} } = content['application/json'];
    return { method, pathname: path, status: Number(status), schema, examples };
  }),
);
type Schema = (typeof DOCUMENTED)[number]['schema'];

const ajv = new Ajv2020({ allErrors: true });
ajv.addVocabulary(['openapi', 'info', 'servers', 'tags', 'paths', 'components']);
ajv.addSchema(openApiDocument, 'openapi.json');

/** Returns the errors of a value, or undefined if it matches the schema. */
function schemaErrors(value: unknown, schema: Schema): string | undefined {
  const { $ref } = schema;
  const validate = ajv.compile($ref === undefined ? schema : { $ref: `openapi.json${$ref}` });
  return validate(value) ? undefined : ajv.errorsText(validate.errors, { dataVar: '' });
}

function errorOf({ method, pathname, status, headers, text }: SeenResponse): string | undefined {
  const verb = method === 'HEAD' ? 'GET' : method;
  const expected = DOCUMENTED.find(
    (each) => each.method === verb && each.pathname === pathname && each.status === status,
  );
  const isJson = headers.get('content-type') === 'application/json';
  if (!expected && !GENERAL.has(status)) return 'an undocumented status';
  if (text === '') return method === 'HEAD' || GENERAL.has(status) ? undefined : 'no body';
  if (method === 'HEAD') return 'a body for HEAD';
  if (!isJson) return 'a body that is not JSON';
  const body: unknown = JSON.parse(text);
  const errors = schemaErrors(body, expected?.schema ?? { $ref: '#/components/schemas/ErrorBody' });
  if (errors !== undefined) return `the body${errors}: ${text}`;
  // The name of an example of an error is its message. That of a 400 describes the problem, so not all are examples.
  const { message } = fieldsOf(body);
  if (expected && status !== 400 && message !== undefined && !Object.hasOwn(expected.examples, `${message}`))
    return `an undocumented message: ${text}`;
  if (expected && headers.get('cache-control') !== 'no-store') return 'no cache-control: no-store';
  return /^[A-Za-z0-9_.:-]{1,64}$/.test(headers.get('x-request-id') ?? '') ? undefined : 'no x-request-id';
}

/**
 * Returns an error if the document does not describe the response: its status, its body and the headers that every response
 * has. Returns undefined if the document does not contain the path of the request.
 */
export function validateResponse(response: SeenResponse): string | undefined {
  const { method, pathname, status } = response;
  if (!DOCUMENTED.some((each) => each.pathname === pathname)) return undefined;
  const error = errorOf(response);
  return (
    error && `The ${status} response to ${method} ${pathname} does not match lib/api/document.ts: ${error}`
  );
}
