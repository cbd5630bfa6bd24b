import { cpSync, existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { z } from 'zod';
import { close, listen } from '../../dev/system/listen';
import {
  type BuiltFunction,
  builtFunction,
  type FunctionOptions,
  type Headers,
  type Reply,
} from './function';
import { first, Rules, router, type Target, type Travel, withoutHop } from './router';

const Override = z.object({ path: z.optional(z.string()), contentType: z.optional(z.string()) });
const Config = z.object({ routes: Rules, overrides: z.record(z.string(), Override) });
const Prerender = z.object({
  fallback: z.object({ fsPath: z.string() }),
  initialStatus: z._default(z.number(), 200),
  initialHeaders: z._default(z.record(z.string(), z.string()), {}),
});

/** The functions of a build, behind its routes. */
export interface Deployment {
  readonly url: string;
  readonly functions: readonly BuiltFunction[];
  readonly middleware: BuiltFunction;
  /** The function that answers at a path. */
  at(pathname: string): BuiltFunction;
  /** Everything that the functions wrote. */
  output(): string;
  stop(): Promise<void>;
}

export interface DeployOptions extends Pick<FunctionOptions, 'environment' | 'apart'> {
  /** `.vercel/output`. */
  readonly output: string;
  /** Where each function gets a folder with its own files, and nothing else. */
  readonly folder: string;
}

const parsed = (file: string): unknown => JSON.parse(readFileSync(file, 'utf8'));

/** What is at which path: functions, some of them under several names; what was rendered by the build; files. */
function targetsOf(
  { output, folder, environment, apart }: DeployOptions,
  overrides: z.infer<typeof Config>['overrides'],
) {
  const targets = new Map<string, Target>();
  const functions = new Map<string, BuiltFunction>();
  const root = path.join(output, 'functions');
  const named = readdirSync(root, { recursive: true, encoding: 'utf8' });
  for (const entry of named.filter((name) => name.endsWith('.func'))) {
    const real = realpathSync(path.join(root, entry));
    const name = path.relative(root, real).replace(/\.func$/, '');
    const own = path.join(folder, name.replaceAll('/', '_'));
    if (!existsSync(own)) cpSync(real, own, { recursive: true, verbatimSymlinks: true });
    const made = functions.get(name) ?? builtFunction({ name, folder: own, environment, apart });
    functions.set(name, made);
    targets.set(`/${entry.replace(/\.func$/, '')}`, { function: made });
  }
  for (const entry of named.filter((name) => name.endsWith('.prerender-config.json'))) {
    const file = path.join(root, entry);
    const { fallback, initialStatus: status, initialHeaders: headers } = Prerender.parse(parsed(file));
    const body = readFileSync(path.join(path.dirname(file), fallback.fsPath));
    targets.set(`/${entry.replace(/\.prerender-config\.json$/, '')}`, { reply: { status, headers, body } });
  }
  const files = path.join(output, 'static');
  for (const entry of readdirSync(files, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = path.join(entry.parentPath, entry.name);
    const name = path.relative(files, file);
    const { path: at = name, contentType = 'application/octet-stream' } = overrides[name] ?? {};
    const reply = { status: 200, headers: { 'content-type': contentType }, body: readFileSync(file) };
    targets.set(`/${at}`, { reply });
  }
  return { functions, targetAt: (at: string) => targets.get(at === '/' ? '/index' : at.replace(/\/$/, '')) };
}

/** The request with what the platform says of it. */
async function travelOf(request: http.IncomingMessage): Promise<Travel> {
  const { method = 'GET', url = '/' } = request;
  // A platform resolves dot segments before it looks for a rule.
  const { pathname, search, searchParams } = new URL(url, 'https://platform');
  const came: Headers = {};
  for (const [name, value] of Object.entries(request.headers)) if (value !== undefined) came[name] = value;
  const { 'x-matched-path': _forged, ...headers } = withoutHop(came);
  return {
    method,
    url: pathname + search,
    body: await buffer(request),
    headers: {
      ...headers,
      'x-forwarded-host': request.headers.host ?? '',
      'x-forwarded-proto': 'https',
      'x-forwarded-for': '127.0.0.1',
    },
    path: pathname,
    query: searchParams,
    status: undefined,
    given: {},
  };
}

/** Serves a build by its own `config.json`, each function in a process of its own. */
export async function deploy(options: DeployOptions): Promise<Deployment> {
  const { routes, overrides } = Config.parse(parsed(path.join(options.output, 'config.json')));
  const { functions, targetAt } = targetsOf(options, overrides);
  const middleware = functions.get('_middleware');
  if (!middleware) throw new Error('The build has no middleware');
  const lead = router(routes, targetAt, middleware);

  async function answer(request: http.IncomingMessage): Promise<Reply> {
    const travel = await travelOf(request);
    const target = await lead(travel);
    const { method, body, headers, query, given, status } = travel;
    const ask = (asked: BuiltFunction) =>
      asked.invoke({
        method,
        // The address as it was asked for, and what the rules found in it.
        url: travel.url.split('?', 1)[0] + (query.size > 0 ? `?${query}` : ''),
        headers: { ...headers, 'x-matched-path': first(given['x-matched-path']) ?? travel.path },
        body,
      });
    const reply = 'reply' in target ? target.reply : await ask(target.function);
    return { ...reply, status: status ?? reply.status, headers: { ...given, ...withoutHop(reply.headers) } };
  }

  const server = http.createServer(async (request, response) => {
    try {
      const { status, headers, body } = await answer(request);
      response.writeHead(status, headers).end(request.method === 'HEAD' ? undefined : body);
    } catch (error) {
      response.writeHead(502).end(String(error));
    }
  });
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
    functions: [...functions.values()],
    middleware,
    at(pathname) {
      const target = targetAt(pathname);
      if (!target || !('function' in target)) throw new Error(`No function at ${pathname}`);
      return target.function;
    },
    output: () => [...functions.values()].map((each) => each.output()).join('\n'),
    async stop() {
      await close(server);
      for (const each of functions.values()) await each.stop();
    },
  };
}
