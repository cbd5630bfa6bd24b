import { z } from 'zod';
import type { BuiltFunction, Headers, Reply } from './function';

/** A rule of `config.json`, as far as this build makes use of it: https://vercel.com/docs/build-output-api/configuration. */
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

/** What answers at a path: bytes that the build made, or a function. */
export type Target = { readonly reply: Reply } | { readonly function: BuiltFunction };

/** A request on its way, which each rule that it meets may change. */
export interface Travel {
  readonly method: string;
  /** As it came. */
  readonly url: string;
  readonly body: Buffer;
  headers: Headers;
  path: string;
  query: URLSearchParams;
  /** Of the answer, where the rules say so. */
  status: number | undefined;
  readonly given: Headers;
}

/** Of one connection, not of what is sent over it. */
const HOP = /^(?:connection|keep-alive|transfer-encoding|upgrade|te|trailer|expect)$/;
/** By which the middleware talks to the platform. */
const SIGN = /^x-middleware-/;

const without = (headers: Headers, ...patterns: readonly RegExp[]): Headers =>
  Object.fromEntries(
    Object.entries(headers).filter(([name]) => !patterns.some((pattern) => pattern.test(name))),
  );
/** What of a message goes on to the next. */
export const withoutHop = (headers: Headers) => without(headers, HOP);

export const first = (value: string | string[] | undefined) => [value].flat()[0];

const whole = (pattern: string) => new RegExp(`^(?:${pattern})$`, 'i');

/** The values of a rule's groups if it applies. */
function matchOf(rule: Rule, { path, headers }: Travel): Readonly<Record<string, string>> | undefined {
  const found = whole(rule.src).exec(path);
  if (!found) return undefined;
  const values: Record<string, string> = {};
  const take = (match: RegExpExecArray) => {
    for (const [index, value = ''] of match.entries()) values[index] ??= value;
    for (const [name, value = ''] of Object.entries(match.groups ?? {})) values[name] = value;
  };
  take(found);
  const holds = ({ key, value }: z.infer<typeof Condition>) => {
    const given = first(headers[key]);
    if (given === undefined || value === undefined) return given !== undefined;
    const match = whole(value).exec(given);
    if (match) take(match);
    return match !== null;
  };
  return rule.has.every(holds) && !rule.missing.some(holds) ? values : undefined;
}

const filled = (template: string, values: Readonly<Record<string, string>>) =>
  template.replace(/\$(\w+)/g, (_, name: string) => values[name] ?? '');

/** What the middleware said of the request that goes on: all headers that it has from now on. */
function headersAfter(headers: Headers, said: Headers): Headers {
  const names = first(said['x-middleware-override-headers'])?.split(',');
  if (!names) return headers;
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = said[`x-middleware-request-${name.trim()}`];
      return value === undefined ? [] : [[name.trim(), value]];
    }),
  );
}

/** Asks the middleware; its answer, if that is the end of the way. */
async function pass(travel: Travel, middleware: BuiltFunction): Promise<Target | undefined> {
  const { method, url, headers, body } = travel;
  const said = await middleware.invoke({ method, url, headers, body });
  const rewrite = first(said.headers['x-middleware-rewrite']);
  if (!rewrite && !said.headers['x-middleware-next']) return { reply: said };
  travel.headers = headersAfter(headers, said.headers);
  Object.assign(travel.given, without(said.headers, HOP, SIGN, /^content-length$/));
  if (rewrite) {
    const { pathname, searchParams } = new URL(rewrite, 'https://platform');
    travel.path = pathname;
    travel.query = searchParams;
  }
  return undefined;
}

type Find = (travel: Travel) => Promise<Target | undefined>;

/**
 * Leads a request to what answers it: middleware first, then files, then the function of the route. Changes the request on
 * the way as the rules say. A stand-in for the platform's router, which may do more before these rules.
 */
export function router(
  routes: z.infer<typeof Rules>,
  targetAt: (path: string) => Target | undefined,
  middleware: BuiltFunction,
): (travel: Travel) => Promise<Target> {
  const phases = new Map<string, Rule[]>();
  let current = '';
  for (const route of routes) {
    if ('handle' in route) current = route.handle;
    else phases.set(current, [...(phases.get(current) ?? []), route]);
  }

  /** Follows the rules of a phase; the target, as soon as `check` finds one where they led. */
  async function follow(phase: string, travel: Travel, check: Find): Promise<Target | undefined> {
    for (const rule of phases.get(phase) ?? []) {
      const values = matchOf(rule, travel);
      if (!values) continue;
      for (const [name, value] of Object.entries(rule.headers))
        travel.given[name.toLowerCase()] = filled(value, values);
      for (const { target, args } of rule.transforms) travel.headers[target.key] = args;
      if (rule.middlewarePath !== undefined) {
        const answered = await pass(travel, middleware);
        if (answered) return answered;
      }
      if (rule.status !== undefined) travel.status = rule.status;
      if (rule.dest !== undefined) {
        const [path = '', query = ''] = filled(rule.dest, values).split('?', 2);
        travel.path = path;
        for (const [name, value] of new URLSearchParams(query)) travel.query.set(name, value);
      }
      const found = rule.check ? await check(travel) : undefined;
      if (found) return found;
      if (!rule.check && !rule.continue) return undefined;
    }
    return undefined;
  }

  const file: Find = async ({ path }) => targetAt(path);
  const lookUp: Find = async (travel) =>
    (await file(travel)) ?? (await follow('miss', travel, file)) ?? (await follow('rewrite', travel, file));

  return async (travel) => {
    const target =
      (await follow('', travel, lookUp)) ??
      (await file(travel)) ??
      (await follow('filesystem', travel, lookUp)) ??
      (await lookUp(travel)) ??
      (await follow('resource', travel, lookUp));
    if (!target) await follow('error', travel, file);
    const found = target ?? targetAt(travel.path);
    if (!found) throw new Error(`${travel.path} leads nowhere`);
    await follow('hit', travel, file);
    return found;
  };
}
