import { Ajv2020 } from 'ajv/dist/2020';
import * as z from 'zod/mini';
import document from '../../lib/api/openapi.json';
import type { SeenResponse } from './requests';

/** Statuses that any request can get from the HTTP server or Next.js. The text of the document names them. */
const GENERAL: ReadonlySet<number> = new Set([204, 400, 404, 405, 408, 411, 413, 414, 417, 431]);

const Response = z.object({
  content: z.object({
    'application/json': z.object({
      schema: z.record(z.string(), z.unknown()),
      examples: z._default(z.record(z.string(), z.object({ value: z.unknown() })), {}),
    }),
  }),
});
const Reference = z.object({ $ref: z.string() });
const Paths = z.record(
  z.string(),
  z.record(z.string(), z.object({ responses: z.record(z.string(), z.unknown()) })),
);

/** A response that an operation of the document lists. `examples` maps the names of its examples to their bodies. */
export interface DocumentedResponse {
  readonly method: string;
  readonly pathname: string;
  readonly status: number;
  readonly schema: object;
  readonly examples: Readonly<Record<string, unknown>>;
}

/** Returns a response of the document. Follows a reference to `components.responses`. */
function resolve(response: unknown): unknown {
  const { $ref = '' } = Reference.safeParse(response).data ?? {};
  const shared = Object.entries(document.components.responses).find(([name]) => $ref.endsWith(`/${name}`));
  return shared?.[1] ?? response;
}

/** The responses that the operations of the document list. */
export const DOCUMENTED: readonly DocumentedResponse[] = Object.entries(Paths.parse(document.paths)).flatMap(
  ([pathname, operations]) =>
    Object.entries(operations).flatMap(([verb, { responses }]) =>
      Object.entries(responses).map(([status, response]) => {
        const { schema, examples } = Response.parse(resolve(response)).content['application/json'];
        return {
          ...{ method: verb.toUpperCase(), pathname, status: Number(status), schema },
          examples: Object.fromEntries(Object.entries(examples).map(([name, { value }]) => [name, value])),
        };
      }),
    ),
);

const ajv = new Ajv2020({ allErrors: true });
ajv.addVocabulary(['openapi', 'info', 'servers', 'tags', 'paths', 'components']);
ajv.addSchema(document, 'openapi.json');

/** Returns the errors of a value, or undefined if it matches the schema. */
function schemaErrors(value: unknown, schema: object): string | undefined {
  const { $ref } = Reference.safeParse(schema).data ?? {};
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
  const errors = schemaErrors(
    JSON.parse(text),
    expected?.schema ?? { $ref: '#/components/schemas/ErrorBody' },
  );
  if (errors !== undefined) return `the body${errors}: ${text}`;
  if (expected && headers.get('cache-control') !== 'no-store') return 'no cache-control: no-store';
  return /^[A-Za-z0-9_.:-]{1,64}$/.test(headers.get('x-request-id') ?? '') ? undefined : 'no x-request-id';
}

/**
 * Returns an error if the document does not describe the response: its status, its body and the headers that every response
 * has. Returns undefined if the document does not contain the path of the request.
 */
export function validateResponse(response: SeenResponse): string | undefined {
  const { method, pathname, status } = response;
  if (!(pathname in document.paths)) return undefined;
  const error = errorOf(response);
  return (
    error && `The ${status} response to ${method} ${pathname} does not match lib/api/openapi.json: ${error}`
  );
}
