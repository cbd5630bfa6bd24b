import { randomUUID } from 'node:crypto';
import type { NextRequest } from 'next/server';
import * as z from 'zod/mini';
import { collectFacts, describeError, log, type RequestFacts } from './log';

/** An answer other than success. The message is public: it helps the caller and tells nothing else. */
export class HttpError extends Error {
  constructor(
    readonly status: 400 | 401 | 404 | 405 | 413,
    message: string,
  ) {
    super(message);
    this.name = 'HttpError';
  }
}

/** A JSON answer. `route` adds the headers that every answer has. */
export function json(body: object, status = 200): Response {
  return Response.json(body, { status });
}

/** The second argument that Next.js passes to a route handler. */
export interface Segment {
  readonly params: Promise<unknown>;
}

/** What Next.js calls for a method of a route. */
export type RouteHandler<S extends Segment> = (
  request: NextRequest,
  segment: S,
) => Promise<Response> | Response;

const PLAIN_REQUEST_ID = /^[A-Za-z0-9_.:-]{1,64}$/;

/** The id of a request: the caller's own, if it is short and plain. */
export const requestIdOf = (given: unknown): string =>
  typeof given === 'string' && PLAIN_REQUEST_ID.test(given) ? given : randomUUID();

/** Decoded as often as a proxy and the framework may do it; more often would be a caller's way to keep us busy. */
function decoded(segment: string, times = 3): string {
  try {
    const once = decodeURIComponent(segment);
    return once === segment || times === 1 ? once : decoded(once, times - 1);
  } catch {
    return segment;
  }
}

/** The route as its folder is named: a dynamic value may be personal and stays out of the log. */
async function routeName(request: NextRequest, { params }: Segment): Promise<string> {
  const names = Object.entries((await params) ?? {}).flatMap(([name, value]) =>
    [value].flat().map((part) => ({ name, value: decoded(String(part)) })),
  );
  // From the end: a static segment that reads like a dynamic one stands before it.
  const segments: string[] = [];
  for (const segment of request.nextUrl.pathname.split('/').reverse()) {
    const isDynamic = names.at(-1)?.value === decoded(segment);
    const name = isDynamic ? `[${names.pop()?.name}]` : segment;
    // A catch-all value is one, however many segments it has.
    if (!isDynamic || name !== segments.at(-1)) segments.push(name);
  }
  // A value that was not found may be anywhere in it.
  return `${request.method} ${names.length === 0 ? segments.reverse().join('/') : '/'}`;
}

/** The one place where a failure becomes an answer (SPEC 7). */
async function failure(error: unknown): Promise<Response> {
  if (error instanceof HttpError) return json({ message: error.message }, error.status);
  // `redirect()` and `notFound()` of Next.js are thrown, and are no failures.
  const { unstable_rethrow } = await import('next/navigation');
  unstable_rethrow(error);
  return json({ message: 'Internal Server Error' }, 500);
}

/** How the answer came about, for the caller's own developer tools: `server-timing: cache;desc=hit`. */
function serverTiming({ cache, caller, registered }: RequestFacts): string {
  return Object.entries({ cache, caller, registered })
    .flatMap(([name, outcome]) => (outcome ? [`${name};desc=${outcome}`] : []))
    .join(', ');
}

declare global {
  /** Next.js bundles the start-up apart from the routes: a variable of this module would not be the same in both. */
  var requestsUnderWay: { count: number; readonly whenIdle: (() => void)[] } | undefined;
}

globalThis.requestsUnderWay ??= { count: 0, whenIdle: [] };
const underWay = globalThis.requestsUnderWay;

/** Resolves once this process has no request under way. */
export function requestsDone(): Promise<void> {
  return underWay.count === 0 ? Promise.resolve() : new Promise((resolve) => underWay.whenIdle.push(resolve));
}

async function answer<S extends Segment>(
  handler: RouteHandler<S>,
  request: NextRequest,
  segment: S,
): Promise<Response> {
  underWay.count += 1;
  try {
    const response = await handler(request, segment);
    if (!(response instanceof Response)) throw new Error('A handler returned no response');
    return response;
  } finally {
    underWay.count -= 1;
    if (underWay.count === 0) for (const resolve of underWay.whenIdle.splice(0)) resolve();
  }
}

/**
 * Makes a route of a handler: whatever the handler throws is answered as SPEC 7 says, every answer has an
 * `x-request-id` and is not cached, and one log line tells how it went.
 */
export function route<S extends Segment>(handler: RouteHandler<S>): RouteHandler<S> {
  return async (request, segment) => {
    const started = performance.now();
    const requestId = requestIdOf(request.headers.get('x-request-id'));
    const facts: RequestFacts = {};
    let cause: unknown;
    const answered = await collectFacts(facts, () => answer(handler, request, segment)).catch(
      (error: unknown) => {
        cause = error;
        return failure(error);
      },
    );
    const response = new Response(answered.body, answered);
    response.headers.set('cache-control', 'no-store');
    response.headers.set('x-request-id', requestId);
    const timing = serverTiming(facts);
    if (timing) response.headers.set('server-timing', timing);
    log[response.status < 500 ? 'info' : 'error'](
      {
        requestId,
        route: await routeName(request, segment),
        status: response.status,
        ms: Math.round(performance.now() - started),
        ...facts,
        ...(response.status < 500 ? {} : { error: describeError(cause) }),
      },
      'request',
    );
    return response;
  };
}

/** The route of a path that names nothing: 404, as JSON. */
export const notFound = route(() => {
  throw new HttpError(404, 'Not found');
});

/** The route of a method that a path does not have: 405, as JSON. */
export const methodNotAllowed = route(() => {
  throw new HttpError(405, 'Method not allowed');
});

/** Ends when the body does: lib/gate.ts bounds how long a sender may take. */
async function readBytes(request: Request, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of request.body ?? []) {
      size += chunk.byteLength;
      if (size > maxBytes) throw new HttpError(413, 'Payload too large');
      chunks.push(chunk);
    }
  } catch (error) {
    throw error instanceof HttpError ? error : new HttpError(400, 'The request body could not be read');
  }
  return Buffer.concat(chunks);
}

/** Strict, and without the byte order mark dropped: text and bytes correspond one to one. */
const exactUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** How much of a body is read, and what is said of one that is no text. */
export interface BodyRules {
  readonly maxBytes: number;
  /** Answer to a body whose bytes are not UTF-8. */
  readonly notUtf8: string;
}

/**
 * The body of a request under a bound. Its `text()` differs from the request's own in two ways: it stops reading above
 * `maxBytes` (413), and it returns text that encodes to exactly the bytes received (else 400).
 */
export function bounded(request: Request, { maxBytes, notUtf8 }: BodyRules): { text(): Promise<string> } {
  return {
    async text() {
      const bytes = await readBytes(request, maxBytes);
      try {
        return exactUtf8.decode(bytes);
      } catch {
        throw new HttpError(400, notUtf8);
      }
    },
  };
}

/** What JSON.parse returns, or undefined for text that is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const MAX_JSON_BYTES = 16 * 1024;

/** The request's JSON body in the shape of `schema`, or an HttpError: 400 that says what is wrong, or 413. */
export async function readJson<T>(request: Request, schema: z.core.$ZodType<T>): Promise<T> {
  const notJson = 'The request body must be JSON in UTF-8';
  const text = await bounded(request, { maxBytes: MAX_JSON_BYTES, notUtf8: notJson }).text();
  const value = parseJson(text);
  if (value === undefined) throw new HttpError(400, notJson);
  const parsed = z.safeParse(schema, value);
  if (parsed.success) return parsed.data;
  throw new HttpError(400, parsed.error.issues[0]?.message ?? notJson);
}
