import * as z from 'zod/mini';
import json from '../../lib/api/openapi.json';

const Reference = z.object({ $ref: z.optional(z.string()) });

/** A request or a response. Every body of this API is JSON. */
const Message = z.object({
  description: z.string(),
  content: z.object({
    'application/json': z.object({
      schema: Reference,
      examples: z._default(z.record(z.string(), z.object({ value: z.unknown() })), {}),
    }),
  }),
});

/** Replaces a reference to a response in `components` with that response. */
function resolve(value: unknown): unknown {
  const { $ref = '' } = Reference.parse(value);
  return Object.entries(json.components.responses).find(([name]) => $ref.endsWith(`/${name}`))?.[1] ?? value;
}

const Operation = z.object({
  summary: z.string(),
  description: z.string(),
  tags: z.array(z.string()),
  security: z.array(z.record(z.string(), z.unknown())),
  requestBody: z.optional(Message),
  responses: z.record(z.string(), z.pipe(z.transform(resolve), Message)),
});

/** The operations. `id` is the URL fragment of an operation, such as `post-auth-v1-register`. */
export const operations = Object.entries(json.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => {
    const { security, ...parsed } = Operation.parse(operation);
    const id = `${method}${path}`.replace(/[^a-z0-9]+/g, '-');
    return { ...parsed, id, path, method: method.toUpperCase(), credentials: security.flatMap(Object.keys) };
  }),
);
export type Operation = (typeof operations)[number];

/** Returns the examples of a body. */
export const examplesOf = (message: z.infer<typeof Message>): unknown[] =>
  Object.values(message.content['application/json'].examples).map(({ value }) => value);

export const { info, tags } = json;
export const securitySchemes = Object.entries(json.components.securitySchemes);
export const schemas = Object.entries<{ readonly description: string }>(json.components.schemas);
