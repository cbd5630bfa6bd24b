import { cpSync, existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { z } from 'zod';
import { close, listen } from '../../dev/system/listen';
import { type BuiltFunction, type FunctionOptions, type Headers, loadFunction, type Reply } from './function';
import { first, type RoutedRequest, Rules, router, type Target, withoutHop } from './router';

const Override = z.object({ path: z.optional(z.string()), contentType: z.optional(z.string()) });
const Config = z.object({ routes: Rules, overrides: z.record(z.string(), Override) });
const Prerender = z.object({
  fallback: z.object({ fsPath: z.string() }),
  initialStatus: z._default(z.number(), 200),
  initialHeaders: z._default(z.record(z.string(), z.string()), {}),
});

/** A running build of the Vercel CLI: a router and the functions of the build. */
export interface Deployment {
  readonly url: string;
  readonly functions: readonly BuiltFunction[];
  readonly middleware: BuiltFunction;
  /** Returns the function that serves a path. */
  at(pathname: string): BuiltFunction;
  /** Returns the stdout and stderr of all functions. */
  output(): string;
  stop(): Promise<void>;
}

export interface DeployOptions extends Pick<FunctionOptions, 'environment' | 'hideServer'> {
  /** Path of `.vercel/output`. */
  readonly output: string;
  /** Folder for the functions. Each function gets a subfolder that contains only its files. */
  readonly folder: string;
}

const readJson = (file: string): unknown => JSON.parse(readFileSync(file, 'utf8'));

/**
 * Reads the functions of the build. `targetAt` returns the target of a path: a function, a prerendered page or a static file.
 */
function readTargets(
  { output, folder, environment, hideServer }: DeployOptions,
  overrides: z.infer<typeof Config>['overrides'],
) {
  const targets = new Map<string, Target>();
  const functions = new Map<string, BuiltFunction>();
  const root = path.join(output, 'functions');
  const named = readdirSync(root, { recursive: true, encoding: 'utf8' });
  // Several paths may be symbolic links to one function.
  for (const entry of named.filter((name) => name.endsWith('.func'))) {
    const real = realpathSync(path.join(root, entry));
    const name = path.relative(root, real).replace(/\.func$/, '');
    const own = path.join(folder, name.replaceAll('/', '_'));
    if (!existsSync(own)) cpSync(real, own, { recursive: true, verbatimSymlinks: true });
    const built = functions.get(name) ?? loadFunction({ name, folder: own, environment, hideServer });
    functions.set(name, built);
    targets.set(`/${entry.replace(/\.func$/, '')}`, { function: built });
  }
  for (const entry of named.filter((name) => name.endsWith('.prerender-config.json'))) {
    const file = path.join(root, entry);
    const { fallback, initialStatus: status, initialHeaders: headers } = Prerender.parse(readJson(file));
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

/** Parses a request. Adds and removes headers as the platform (Vercel) does. */
async function parseRequest(request: http.IncomingMessage): Promise<RoutedRequest> {
  const { method = 'GET', url = '/' } = request;
  // The platform resolves dot segments before it applies the routing rules of config.json.
  const { pathname, search, searchParams } = new URL(url, 'https://platform');
  const received: Headers = {};
  for (const [name, value] of Object.entries(request.headers))
    if (value !== undefined) received[name] = value;
  const { 'x-matched-path': _forged, ...headers } = withoutHop(received);
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
    responseHeaders: {},
  };
}

/** Serves a build according to its `config.json`. Each function runs in a separate process. */
export async function deploy(options: DeployOptions): Promise<Deployment> {
  const { routes, overrides } = Config.parse(readJson(path.join(options.output, 'config.json')));
  const { functions, targetAt } = readTargets(options, overrides);
  const middleware = functions.get('_middleware');
  if (!middleware) throw new Error('The build does not contain a middleware.');
  const route = router(routes, targetAt, middleware);

  async function handle(request: http.IncomingMessage): Promise<Reply> {
    const routed = await parseRequest(request);
    const target = await route(routed);
    const { method, body, headers, query, responseHeaders, status } = routed;
    const invoke = (built: BuiltFunction) =>
      built.invoke({
        method,
        // The original path with the current query, which rules or the middleware may have changed.
        url: routed.url.split('?', 1)[0] + (query.size > 0 ? `?${query}` : ''),
        headers: { ...headers, 'x-matched-path': first(responseHeaders['x-matched-path']) ?? routed.path },
        body,
      });
    const reply = 'reply' in target ? target.reply : await invoke(target.function);
    return {
      ...reply,
      status: status ?? reply.status,
      headers: { ...responseHeaders, ...withoutHop(reply.headers) },
    };
  }

  const server = http.createServer(async (request, response) => {
    try {
      const { status, headers, body } = await handle(request);
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
      if (!target || !('function' in target)) throw new Error(`There is no function at ${pathname}.`);
      return target.function;
    },
    output: () => [...functions.values()].map((each) => each.output()).join('\n'),
    async stop() {
      await close(server);
      for (const each of functions.values()) await each.stop();
    },
  };
}
