import * as z from 'zod/mini';
import json from '../../lib/api/openapi.json';

const Dictionary = z.record(z.string(), z.unknown());

/** What a JSON pointer (RFC 6901) leads to, and the last word of it, which is its name. */
function pointedAt(pointer: string): { name: string; part: unknown } {
  const words = pointer
    .slice('#/'.length)
    .split('/')
    .map((word) => word.replaceAll('~1', '/').replaceAll('~0', '~'));
  const part = words.reduce<unknown>((value, word) => Dictionary.parse(value)[word], json);
  return { name: words.at(-1) ?? '', part };
}

const Reference = z.looseObject({ $ref: z.string() });

/** A part of the document with what it refers to in its place, which keeps its name as `refersTo`. */
function resolved(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(resolved);
  const dictionary = Dictionary.safeParse(part);
  if (!dictionary.success) return part;
  const reference = Reference.safeParse(part);
  if (!reference.success) {
    return Object.fromEntries(Object.entries(dictionary.data).map(([key, value]) => [key, resolved(value)]));
  }
  const { $ref, ...own } = reference.data;
  const { name, part: referred } = pointedAt($ref);
  return { ...Dictionary.parse(resolved(referred)), ...own, refersTo: name };
}

const Schema = z.object({
  refersTo: z.optional(z.string()),
  description: z.optional(z.string()),
  type: z.optional(z.string()),
  const: z.optional(z.unknown()),
  enum: z._default(z.array(z.unknown()), []),
  pattern: z.optional(z.string()),
  minLength: z.optional(z.number()),
  maxLength: z.optional(z.number()),
  required: z._default(z.array(z.string()), []),
  get properties() {
    return z.optional(z.record(z.string(), Schema));
  },
  /** Objects, of which it is one. */
  get anyOf() {
    return z._default(z.array(Schema), []);
  },
});
export type Schema = z.infer<typeof Schema>;

/** What is sent one way or the other: all of it is JSON. */
const Content = z.object({
  'application/json': z.object({
    schema: Schema,
    examples: z._default(z.record(z.string(), z.object({ value: z.unknown() })), {}),
  }),
});

const Header = z.object({
  description: z.optional(z.string()),
  required: z._default(z.boolean(), false),
  schema: Schema,
});

const Response = z.object({
  refersTo: z.optional(z.string()),
  description: z.string(),
  headers: z._default(z.record(z.string(), Header), {}),
  content: z.optional(Content),
});

const Parameter = z.object({ name: z.string(), in: z.string(), description: z.string(), schema: Schema });

const Operation = z.object({
  tags: z.array(z.string()),
  summary: z.string(),
  description: z.string(),
  security: z.array(z.record(z.string(), z.array(z.string()))),
  parameters: z._default(z.array(Parameter), []),
  requestBody: z.optional(z.object({ description: z.string(), content: Content })),
  responses: z.record(z.string(), Response),
});

const Operations = z.record(z.string(), z.record(z.string(), Operation));

const Document = z.object({
  info: z.object({ version: z.string(), description: z.string() }),
  tags: z.array(z.object({ name: z.string(), description: z.string() })),
  paths: Operations,
  webhooks: Operations,
  'x-elsewhere': z.array(z.object({ status: z.number(), response: Response })),
  components: z.object({
    schemas: z.record(z.string(), Schema),
    securitySchemes: z.record(
      z.string(),
      z.object({
        type: z.string(),
        description: z.string(),
        scheme: z.optional(z.string()),
        in: z.optional(z.string()),
        name: z.optional(z.string()),
      }),
    ),
  }),
});

/** A text as the fragment of an address: `POST /auth/v1/register` is `post-auth-v1-register`. */
export const fragment = (text: string): string =>
  text
    .replace(/([a-z])([A-Z])/g, '$1-$2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');

/** Those of a section of the document, each with its anchor and with its answers, which have theirs. */
const operationsOf = (given: z.infer<typeof Operations>, kind: 'path' | 'webhook') =>
  Object.entries(given).flatMap(([path, methods]) =>
    Object.entries(methods).map(([name, { responses, ...operation }]) => {
      const method = name.toUpperCase();
      const id = fragment(`${kind === 'path' ? method : kind} ${path}`);
      const answers = Object.entries(responses).map(([status, answer]) => ({
        ...answer,
        status,
        id: `${id}-${status}`,
      }));
      return { ...operation, kind, method, path, id, answers };
    }),
  );

const document = Document.parse(resolved(json));

export const { info, tags } = document;
export const { schemas, securitySchemes } = document.components;
export const operations = [
  ...operationsOf(document.paths, 'path'),
  ...operationsOf(document.webhooks, 'webhook'),
];
export type Operation = (typeof operations)[number];
/** A status that an operation answers with, and all about it. */
export type Answer = Operation['answers'][number];

/** What comes to no operation is answered with. */
export const elsewhere: readonly Answer[] = document['x-elsewhere'].map(({ status, response }) => ({
  ...response,
  status: String(status),
  id: fragment(`elsewhere ${status} ${response.refersTo ?? ''}`),
}));
