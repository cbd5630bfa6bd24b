import * as z from 'zod/mini';
import json from '../../lib/api/openapi.json';

const Dictionary = z.record(z.string(), z.unknown());

/** Returns the value in the OpenAPI document at a JSON pointer (RFC 6901). */
const valueAt = (pointer: string): unknown =>
  pointer
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>((value, token) => Dictionary.parse(value)[token], json);

/** Replaces each `$ref` with its target. The name of the target becomes the property `ref`. */
function resolve(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(resolve);
  const parsed = Dictionary.safeParse(value);
  if (!parsed.success) return value;
  const { $ref, ...rest } = parsed.data;
  if (typeof $ref === 'string') {
    return { ...Dictionary.parse(resolve(valueAt($ref))), ...rest, ref: $ref.split('/').at(-1) };
  }
  return Object.fromEntries(Object.entries(parsed.data).map(([key, each]) => [key, resolve(each)]));
}

const text = z.optional(z.string());

const Schema = z.object({
  ref: text,
  description: text,
  type: text,
  const: z.optional(z.unknown()),
  enum: z._default(z.array(z.unknown()), []),
  pattern: text,
  minLength: z.optional(z.number()),
  maxLength: z.optional(z.number()),
  required: z._default(z.array(z.string()), []),
  get properties() {
    return z._default(z.record(z.string(), Schema), {});
  },
  get anyOf() {
    return z._default(z.array(Schema), []);
  },
});
export type Schema = z.infer<typeof Schema>;

/** Every body of this API is JSON. */
const Content = z.object({
  'application/json': z.object({
    schema: Schema,
    examples: z._default(z.record(z.string(), z.object({ value: z.unknown() })), {}),
  }),
});

const Header = z.object({ description: text, required: z._default(z.boolean(), false), schema: Schema });

const Response = z.object({
  ref: text,
  description: z.string(),
  headers: z._default(z.record(z.string(), Header), {}),
  content: z.optional(Content),
});

const Operation = z.object({
  tags: z.array(z.string()),
  summary: z.string(),
  description: z.string(),
  security: z.array(z.record(z.string(), z.array(z.string()))),
  parameters: z._default(
    z.array(z.object({ name: z.string(), in: z.string(), description: z.string(), schema: Schema })),
    [],
  ),
  requestBody: z.optional(z.object({ description: z.string(), content: Content })),
  responses: z.record(z.string(), Response),
});
const Operations = z.record(z.string(), z.record(z.string(), Operation));

const document = z
  .object({
    info: z.object({ version: z.string(), description: z.string() }),
    tags: z.array(z.object({ name: z.string(), description: z.string() })),
    paths: Operations,
    webhooks: Operations,
    'x-elsewhere': z.array(z.object({ status: z.number(), response: Response })),
    components: z.object({
      schemas: z.record(z.string(), Schema),
      securitySchemes: z.record(
        z.string(),
        z.object({ type: z.string(), description: z.string(), scheme: text, in: text, name: text }),
      ),
    }),
  })
  .parse(resolve(json));

export const { info, tags } = document;
export const { schemas, securitySchemes } = document.components;

/** Returns the URL fragment of a heading: `post-auth-v1-register` for `POST /auth/v1/register`. */
export const fragment = (name: string): string =>
  name
    .replace(/([a-z])([A-Z])/g, '$1-$2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');

const operationsIn = (paths: z.infer<typeof Operations>, kind: 'path' | 'webhook') =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([key, operation]) => {
      const method = kind === 'path' ? key.toUpperCase() : 'event';
      const id = fragment(`${kind === 'path' ? method : kind} ${path}`);
      const responses = Object.entries(operation.responses).map(([status, response]) => ({
        ...response,
        status,
        id: `${id}-${status}`,
      }));
      return { ...operation, kind, method, path, id, responses };
    }),
  );

export const operations = [
  ...operationsIn(document.paths, 'path'),
  ...operationsIn(document.webhooks, 'webhook'),
];
export type Operation = (typeof operations)[number];
/** A response with its status and with `id`, the URL fragment of its place on the page /docs. */
export type Response = Operation['responses'][number];

/** Responses to requests whose method and path do not belong to an operation. */
export const elsewhere: readonly Response[] = document['x-elsewhere'].map(({ status, response }) => ({
  ...response,
  status: String(status),
  id: fragment(`elsewhere ${status} ${response.ref ?? ''}`),
}));

const calls = operations.filter(({ kind }) => kind === 'path');
const responses = calls.flatMap((operation) => operation.responses);
/** The responses that several operations share. Each response is listed once. */
export const shared: readonly Response[] = responses
  .filter((response) => {
    const uses = responses.filter(({ ref }) => ref !== undefined && ref === response.ref);
    return uses.length > 1 && uses[0] === response;
  })
  .map((response) => ({ ...response, id: fragment(`response ${response.ref}`) }))
  .toSorted((one, other) => Number(one.status) - Number(other.status));

/** Returns the URL fragment of the full description of a response. */
export const anchorOf = ({ id, ref }: Response): string =>
  (ref && [...shared, ...responses].find((other) => other.ref === ref)?.id) || id;

/** The request parameters, which are the same for every operation. */
export const parameters = calls[0]?.parameters ?? [];

const headers = [...responses, ...elsewhere].flatMap((response) => Object.entries(response.headers));

/** The response headers. If responses specify different patterns for a header, `schemas` has one schema for each pattern. */
export const responseHeaders = [...new Set(headers.map(([name]) => name))].map((name) => {
  const uses = headers.flatMap(([other, header]) => (other === name ? [header] : []));
  return {
    name,
    description: uses[0]?.description,
    isEverywhere: responses.every((response) => name in response.headers),
    schemas: [...new Map(uses.map(({ schema }) => [schema.pattern, schema])).values()],
  };
});
