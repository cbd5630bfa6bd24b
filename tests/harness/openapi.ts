import { Ajv2020 } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import * as z from 'zod/mini';
import { isApi } from '#lib/routing/paths';
import document from '../../lib/api/openapi.json';
import type { SeenAnswer } from './answers';

/** What an answer may have beside the headers that the document names: of HTTP and of its framing, and for security. */
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

/** What stands at a place of the document, and where that is once references are followed. */
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

/** What is wrong with a value by the schema at this place; nothing: undefined. */
function faultOf(value: unknown, pointer: string): string | undefined {
  const at = `openapi.json#${pointer.split('/').map(encodeURIComponent).join('/')}`;
  const validate = ajv.getSchema(at);
  if (!validate) throw new Error(`No schema at ${at}`);
  return validate(value) ? undefined : ajv.errorsText(validate.errors, { dataVar: '' });
}

/** An answer that the document describes. */
export interface DocumentedAnswer {
  /** `GET /users/v1/me 401`, or `elsewhere 404 NotFound`. */
  readonly name: string;
  readonly method: string;
  /** Undefined: of what comes to no operation. */
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

function documented(answer: Omit<DocumentedAnswer, 'examples' | 'pointer'>, at: string): DocumentedAnswer {
  const { pointer, value } = resolve(at);
  const examples = Response.parse(value).content['application/json']?.examples ?? {};
  return {
    ...answer,
    pointer,
    examples: Object.fromEntries(Object.entries(examples).map(([name, example]) => [name, example.value])),
  };
}

/** Every answer that the document describes: of its operations, and of what comes to none of them. */
export const DOCUMENTED: readonly DocumentedAnswer[] = [
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

/** What is wrong with the body; of an answer to HEAD there is none. */
function faultOfBody(
  { method, headers, text }: SeenAnswer,
  { pointer }: DocumentedAnswer,
): string | undefined {
  const { content } = Response.parse(resolve(pointer).value);
  const type = headers.get('content-type');
  if (Object.keys(content).length === 0) return text === '' ? undefined : `an undocumented body: ${text}`;
  if (type === null || !(type in content)) return `the undocumented content-type ${type}`;
  if (method === 'HEAD') return text === '' ? undefined : 'a body for HEAD';
  const fault = faultOf(JSON.parse(text), `${pointer}${pointerOf('content', type, 'schema')}`);
  return fault && `the body${fault}: ${text}`;
}

/** What is wrong with the headers. */
function faultsOfHeaders({ headers }: SeenAnswer, { pointer }: DocumentedAnswer): (string | undefined)[] {
  const described = Response.parse(resolve(pointer).value).headers;
  return [
    ...[...headers.keys()]
      .filter((name) => !(name in described) && !ORDINARY_HEADERS.has(name))
      .map((name) => `the undocumented header ${name}`),
    ...Object.keys(described).map((name) => {
      const header = resolve(`${pointer}${pointerOf('headers', name)}`);
      const value = headers.get(name);
      if (value === null) return Header.parse(header.value).required ? `no ${name}` : undefined;
      const fault = faultOf(value, `${header.pointer}/schema`);
      return fault && `${name}: ${value}: ${fault}`;
    }),
  ];
}

const faultsOf = (answer: SeenAnswer, by: DocumentedAnswer): string[] =>
  [faultOfBody(answer, by), ...faultsOfHeaders(answer, by)].filter((fault) => fault !== undefined);

const ROOTS = new Set(Object.keys(document.paths).map((pathname) => pathname.split('/')[1]));

/** The answers that may come to a request; undefined: the document does not speak of its address. */
function candidates({ method, pathname, headers }: SeenAnswer): readonly DocumentedAnswer[] | undefined {
  if (pathname === undefined)
    return headers.get('content-type') === 'application/json' ? DOCUMENTED : undefined;
  if (!isApi(pathname) || !ROOTS.has(pathname.split('/')[1])) return undefined;
  const asked = method === 'HEAD' ? 'GET' : method;
  const ofOperation = DOCUMENTED.filter((answer) => answer.method === asked && answer.pathname === pathname);
  return ofOperation.length > 0 ? ofOperation : DOCUMENTED.filter((answer) => answer.pathname === undefined);
}

/** The documented answer that an answer is, or what is wrong with it; undefined where the document does not speak of it. */
export function judge(
  answer: SeenAnswer,
): { readonly is?: DocumentedAnswer; readonly wrong?: string } | undefined {
  const all = candidates(answer);
  if (!all) return undefined;
  const ofStatus = all.filter(({ status }) => status === answer.status);
  const is = ofStatus.find((one) => faultsOf(answer, one).length === 0);
  if (is) return { is };
  const [first] = ofStatus;
  const faults = first ? faultsOf(answer, first).join('; ') : 'an undocumented status';
  return {
    wrong: `${answer.method} ${answer.pathname} answered ${answer.status}, which lib/api/openapi.json does not describe: ${faults}`,
  };
}
