import { z } from 'zod';
import type { BuiltFunction, Headers, Reply } from './function';

/**
 * Schemas of the routing rules in `config.json`, a file that the Vercel CLI writes when it builds the service. The schemas
 * contain only the fields that this build uses. Source: https://vercel.com/docs/build-output-api/configuration.
 */
const Condition = z.object({
  type: z.literal('header'),
  key: z.string(),
  value: z.optional(z.string()),
});
const Transform = z.object({
  type: z.literal('request.headers'),
  op: z.literal('set'),
  target: z.object({ key: z.string() }),
  args: z.string(),
});
const Rule = z.object({
  src: z.string(),
  dest: z.optional(z.string()),
  status: z.optional(z.number()),
  headers: z._default(z.record(z.string(), z.string()), {}),
  has: z._default(z.array(Condition), []),
  missing: z._default(z.array(Condition), []),
  transforms: z._default(z.array(Transform), []),
  middlewarePath: z.optional(z.string()),
  continue: z._default(z.boolean(), false),
  check: z._default(z.boolean(), false),
});
type Rule = z.infer<typeof Rule>;
export const Rules = z.array(z.union([z.object({ handle: z.string() }), Rule]));

/** Target of a path: a response that is part of the build (a static file or a prerendered page), or a serverless function. */
export type Target = { readonly reply: Reply } | { readonly function: BuiltFunction };

/** A request while the rules are applied. Rules may change its mutable fields. */
export interface RoutedRequest {
  readonly method: string;
  /** Original path and query. */
  readonly url: string;
  readonly body: Buffer;
  headers: Headers;
  path: string;
  query: URLSearchParams;
  /** Response status, if a rule sets one. */
  status: number | undefined;
  readonly responseHeaders: Headers;
}

/** Hop-by-hop headers. */
const HOP = /^(?:connection|keep-alive|transfer-encoding|upgrade|te|trailer|expect)$/;
/** Headers of a middleware response that only Vercel's router reads. */
const MIDDLEWARE = /^x-middleware-/;

const without = (headers: Headers, ...patterns: readonly RegExp[]): Headers =>
  Object.fromEntries(
    Object.entries(headers).filter(([name]) => !patterns.some((pattern) => pattern.test(name))),
  );
/** Removes the hop-by-hop headers. */
export const withoutHop = (headers: Headers) => without(headers, HOP);

export const first = (value: string | string[] | undefined) => [value].flat()[0];

const fullMatch = (pattern: string) => new RegExp(`^(?:${pattern})$`, 'i');

/** Returns the captured groups of a rule, by number and by name, or undefined if the rule does not apply. */
function matchRule(
  rule: Rule,
  { path, headers }: RoutedRequest,
): Readonly<Record<string, string>> | undefined {
  const found = fullMatch(rule.src).exec(path);
  if (!found) return undefined;
  const values: Record<string, string> = {};
  const take = (match: RegExpExecArray) => {
    for (const [index, value = ''] of match.entries()) values[index] ??= value;
    for (const [name, value = ''] of Object.entries(match.groups ?? {})) values[name] = value;
  };
  take(found);
  const isMet = ({ key, value }: z.infer<typeof Condition>) => {
    const header = first(headers[key]);
    if (header === undefined || value === undefined) return header !== undefined;
    const match = fullMatch(value).exec(header);
    if (match) take(match);
    return match !== null;
  };
  return rule.has.every(isMet) && !rule.missing.some(isMet) ? values : undefined;
}

/**
 * Returns true for a rule that only sets a request header. The build has such a rule without `continue` for each server action,
 * before the rule of the middleware (https://github.com/nextjs/adapter-vercel/pull/113). Vercel does not document whether its
 * router continues with the next rule. This router continues. Otherwise, it would skip the middleware, and Clerk's SDK
 * would fail in every server action.
 */
const isAnnotation = ({ dest, status, middlewarePath, headers, transforms }: Rule) =>
  [dest, status, middlewarePath].every((target) => target === undefined) &&
  Object.keys(headers).length === 0 &&
  transforms.length > 0;

const fillTemplate = (template: string, values: Readonly<Record<string, string>>) =>
  template.replace(/\$(\w+)/g, (_, name: string) => values[name] ?? '');

/**
 * Returns the request headers after the middleware. If the middleware overrides request headers, its response contains the
 * names and values of all headers that the request has afterwards. Other headers of the request are dropped.
 */
function applyHeaderOverrides(headers: Headers, middlewareHeaders: Headers): Headers {
  const names = first(middlewareHeaders['x-middleware-override-headers'])?.split(',');
  if (!names) return headers;
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = middlewareHeaders[`x-middleware-request-${name.trim()}`];
      return value === undefined ? [] : [[name.trim(), value]];
    }),
  );
}

/** Runs the middleware. Returns its response, or undefined if the request continues. */
async function runMiddleware(routed: RoutedRequest, middleware: BuiltFunction): Promise<Target | undefined> {
  const { method, url, headers, body } = routed;
  const reply = await middleware.invoke({ method, url, headers, body });
  const rewrite = first(reply.headers['x-middleware-rewrite']);
  if (!rewrite && !reply.headers['x-middleware-next']) return { reply };
  routed.headers = applyHeaderOverrides(headers, reply.headers);
  Object.assign(routed.responseHeaders, without(reply.headers, HOP, MIDDLEWARE, /^content-length$/));
  if (rewrite) {
    const { pathname, searchParams } = new URL(rewrite, 'https://platform');
    routed.path = pathname;
    routed.query = searchParams;
  }
  return undefined;
}

type Find = (routed: RoutedRequest) => Promise<Target | undefined>;

/**
 * Emulates Vercel's router. Returns a function that applies the rules to a request and resolves with the target of the request.
 * The rules before the first `handle` entry are applied first. One of them runs the middleware. Rules can rewrite the path, so
 * the returned function calls `targetAt` several times, until there is a target. It rejects if no target is found.
 *
 * Before the first rule, Vercel's router may change or reject a request in ways that this function does not emulate.
 */
export function router(
  routes: z.infer<typeof Rules>,
  targetAt: (path: string) => Target | undefined,
  middleware: BuiltFunction,
): (routed: RoutedRequest) => Promise<Target> {
  const phases = new Map<string, Rule[]>();
  let current = '';
  for (const route of routes) {
    if ('handle' in route) current = route.handle;
    else phases.set(current, [...(phases.get(current) ?? []), route]);
  }

  /**
   * Applies the rules of a phase. The first phase has the name '' and contains the rules before any `handle` entry. Each other
   * phase has the name of a `handle` entry and contains the rules between this entry and the next one.
   *
   * Returns the first target that the middleware or `find` returns. Calls `find` after each rule with the field `check`. Returns
   * undefined if no rule is left. Also returns undefined after a rule that has neither `check` nor `continue`, unless
   * `isAnnotation` returns true for this rule.
   */
  async function applyPhase(phase: string, routed: RoutedRequest, find: Find): Promise<Target | undefined> {
    for (const rule of phases.get(phase) ?? []) {
      const values = matchRule(rule, routed);
      if (!values) continue;
      for (const [name, value] of Object.entries(rule.headers))
        routed.responseHeaders[name.toLowerCase()] = fillTemplate(value, values);
      for (const { target, args } of rule.transforms) routed.headers[target.key] = args;
      if (rule.middlewarePath !== undefined) {
        const response = await runMiddleware(routed, middleware);
        if (response) return response;
      }
      if (rule.status !== undefined) routed.status = rule.status;
      if (rule.dest !== undefined) {
        const [path = '', query = ''] = fillTemplate(rule.dest, values).split('?', 2);
        routed.path = path;
        for (const [name, value] of new URLSearchParams(query)) routed.query.set(name, value);
      }
      const found = rule.check ? await find(routed) : undefined;
      if (found) return found;
      if (!rule.check && !rule.continue && !isAnnotation(rule)) return undefined;
    }
    return undefined;
  }

  const file: Find = async ({ path }) => targetAt(path);
  const lookUp: Find = async (routed) =>
    (await file(routed)) ??
    (await applyPhase('miss', routed, file)) ??
    (await applyPhase('rewrite', routed, file));

  return async (routed) => {
    const target =
      (await applyPhase('', routed, lookUp)) ??
      (await file(routed)) ??
      (await applyPhase('filesystem', routed, lookUp)) ??
      (await lookUp(routed)) ??
      (await applyPhase('resource', routed, lookUp));
    if (!target) await applyPhase('error', routed, file);
    const found = target ?? targetAt(routed.path);
    if (!found) throw new Error(`There is no target at ${routed.path}.`);
    await applyPhase('hit', routed, file);
    return found;
  };
}
