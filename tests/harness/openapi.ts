import { Ajv2020 } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import * as z from 'zod/mini';
import { isApi } from '#lib/routing/paths';
import document from '../../lib/api/openapi.json';
import type { SeenResponse } from './responses';

/**
 * Headers that every response may have: HTTP framing and security headers. The OpenAPI document does not list these
 * headers.
 */
const ORDINARY_HEADERS = new Set([
  ...['connection', 'content-length', 'content-type', 'date', 'keep-alive', 'transfer-encoding', 'vary'],
  ...['content-security-policy', 'cross-origin-opener-policy', 'permissions-policy', 'referrer-policy'],
  ...['strict-transport-security', 'x-content-type-options', 'x-frame-options'],
]);

const Reference = z.object({ $ref: z.string() });
const Header = z.object({ required: z.optional(z.boolean()), schema: z.unknown() });
const Media = z.object({
  schema: z.unknown(),
  examples: z._default(z.record(z.string(), z.object({ value: z.unknown() })), {}),
});
const Response = z.object({
  headers: z._default(z.record(z.string(), z.unknown()), {}),
  content: z._default(z.record(z.string(), Media), {}),
});

const pointerOf = (...segments: readonly (string | number)[]) =>
  segments.map((segment) => `/${String(segment).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

/**
 * Returns the value at a JSON pointer of the document. Follows references, and also returns the pointer at which the
 * value was found.
 */
function resolve(pointer: string): { readonly pointer: string; readonly value: unknown } {
  const value = pointer
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>((inner, segment) => Object(inner)[segment], document);
  const reference = Reference.safeParse(value);
  return reference.success ? resolve(reference.data.$ref.slice(1)) : { pointer, value };
}

const ajv = new Ajv2020({ allErrors: true });
addFormats(ajv);
ajv.addVocabulary(['openapi', 'info', 'servers', 'tags', 'paths', 'webhooks', 'components', 'x-elsewhere']);
ajv.addSchema(document, 'openapi.json');

/**
 * Validates a value against the schema at a JSON pointer. Returns the errors as text, or undefined if the value is
 * valid.
 */
function schemaErrors(value: unknown, pointer: string): string | undefined {
  const at = `openapi.json#${pointer.split('/').map(encodeURIComponent).join('/')}`;
  const validate = ajv.getSchema(at);
  if (!validate) throw new Error(`No schema at ${at}`);
  return validate(value) ? undefined : ajv.errorsText(validate.errors, { dataVar: '' });
}

/** A response that the document describes. */
export interface DocumentedResponse {
  /** For example `GET /users/v1/me 401`, or `elsewhere 404 NotFound` for a request that does not match an operation. */
  readonly name: string;
  readonly method: string;
  /** Undefined for a response to a request that does not match an operation. */
  readonly pathname: string | undefined;
  readonly status: number;
  readonly pointer: string;
  readonly examples: Readonly<Record<string, unknown>>;
}

const Paths = z.record(
  z.string(),
  z.record(z.string(), z.object({ responses: z.record(z.string(), z.unknown()) })),
);
const Elsewhere = z.array(z.object({ status: z.number(), response: Reference }));

function documented(
  response: Omit<DocumentedResponse, 'examples' | 'pointer'>,
  at: string,
): DocumentedResponse {
  const { pointer, value } = resolve(at);
  const examples = Response.parse(value).content['application/json']?.examples ?? {};
  return {
    ...response,
    pointer,
    examples: Object.fromEntries(Object.entries(examples).map(([name, example]) => [name, example.value])),
  };
}

/**
 * The responses that the OpenAPI document describes. Responses to requests that do not match an operation are in the list
 * `x-elsewhere` of the document.
 */
export const DOCUMENTED: readonly DocumentedResponse[] = [
  ...Object.entries(Paths.parse(document.paths)).flatMap(([pathname, operations]) =>
    Object.entries(operations).flatMap(([verb, { responses }]) =>
      Object.keys(responses).map((status) => {
        const method = verb.toUpperCase();
        const name = `${method} ${pathname} ${status}`;
        const at = pointerOf('paths', pathname, verb, 'responses', status);
        return documented({ name, method, pathname, status: Number(status) }, at);
      }),
    ),
  ),
  ...Elsewhere.parse(document['x-elsewhere']).map(({ status, response }, index) => {
    const name = `elsewhere ${status} ${response.$ref.split('/').at(-1)}`;
    const at = pointerOf('x-elsewhere', index, 'response');
    return documented({ name, method: '', pathname: undefined, status }, at);
  }),
];

/** Returns the error of the body, or undefined if the body is correct. A response to HEAD must not have a body. */
function bodyError(
  { method, headers, text }: SeenResponse,
  { pointer }: DocumentedResponse,
): string | undefined {
  const { content } = Response.parse(resolve(pointer).value);
  const type = headers.get('content-type');
  if (Object.keys(content).length === 0) return text === '' ? undefined : `an undocumented body: ${text}`;
  if (type === null || !(type in content)) return `the undocumented content-type ${type}`;
  if (method === 'HEAD') return text === '' ? undefined : 'a body for HEAD';
  const errors = schemaErrors(JSON.parse(text), `${pointer}${pointerOf('content', type, 'schema')}`);
  return errors && `the body${errors}: ${text}`;
}

/** Returns an error for each undocumented header. For each documented header, returns an error or undefined. */
function headerErrors({ headers }: SeenResponse, { pointer }: DocumentedResponse): (string | undefined)[] {
  const described = Response.parse(resolve(pointer).value).headers;
  return [
    ...[...headers.keys()]
      .filter((name) => !(name in described) && !ORDINARY_HEADERS.has(name))
      .map((name) => `the undocumented header ${name}`),
    ...Object.keys(described).map((name) => {
      const header = resolve(`${pointer}${pointerOf('headers', name)}`);
      const value = headers.get(name);
      if (value === null) return Header.parse(header.value).required ? `no ${name}` : undefined;
      const errors = schemaErrors(value, `${header.pointer}/schema`);
      return errors && `${name}: ${value}: ${errors}`;
    }),
  ];
}

const errorsOf = (response: SeenResponse, expected: DocumentedResponse): string[] =>
  [bodyError(response, expected), ...headerErrors(response, expected)].filter((error) => error !== undefined);

const ROOTS = new Set(Object.keys(document.paths).map((pathname) => pathname.split('/')[1]));

/**
 * Returns the documented responses that a response may match:
 * - the responses of an operation, if the method and the path of the request match this operation.
 * - the responses of `x-elsewhere`, if the request matches no operation, but its path has the first segment of a documented path.
 * - all documented responses, if the response was recorded without the path of its request, and is JSON.
 *
 * Returns undefined in all other cases.
 */
function candidates({ method, pathname, headers }: SeenResponse): readonly DocumentedResponse[] | undefined {
  if (pathname === undefined)
    return headers.get('content-type') === 'application/json' ? DOCUMENTED : undefined;
  if (!isApi(pathname) || !ROOTS.has(pathname.split('/')[1])) return undefined;
  const verb = method === 'HEAD' ? 'GET' : method;
  const ofOperation = DOCUMENTED.filter((one) => one.method === verb && one.pathname === pathname);
  return ofOperation.length > 0 ? ofOperation : DOCUMENTED.filter((one) => one.pathname === undefined);
}

/**
 * Returns the documented response that matches a response, or an error message if none matches. Returns undefined if
 * `candidates` returns undefined.
 */
export function validateResponse(
  response: SeenResponse,
): { readonly match?: DocumentedResponse; readonly error?: string } | undefined {
  const all = candidates(response);
  if (!all) return undefined;
  const ofStatus = all.filter(({ status }) => status === response.status);
  const match = ofStatus.find((one) => errorsOf(response, one).length === 0);
  if (match) return { match };
  const [first] = ofStatus;
  const errors = first ? errorsOf(response, first).join('; ') : 'an undocumented status';
  return {
    error: `The ${response.status} response to ${response.method} ${response.pathname} does not match lib/api/openapi.json: ${errors}`,
  };
}
