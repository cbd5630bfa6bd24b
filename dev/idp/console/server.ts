import { readdir, readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { close, listen } from '../../system/listen';
import { ApiError, type ApiResponse, findRoute, notFound, readBody } from '../http';
import type { Instance } from '../instance';
import { followStore } from './live';
import { consoleRoutes } from './routes';

/** The console of one instance: the page on which a person sees and moves what the stand-in does. */
export interface Console {
  readonly url: string;
  /** Ends every connection; open pages say that the stack is gone until it is back. */
  stop(): Promise<void>;
}

interface File {
  readonly type: string;
  readonly bytes: Buffer;
}

const PAGE_FOLDER = fileURLToPath(new URL('page/', import.meta.url));
const PAGE = 'index.html';
/** One file without imports; the package exports it to bundlers only. */
const PREACT = join(createRequire(import.meta.url).resolve('htm'), '../../preact/standalone.module.js');
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Event data is whatever somebody sent: nothing but the page's own files runs, and no text becomes markup. */
const SECURITY_HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'self'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
};

/** A name that stands for this machine only; a port-forward may change the port. */
const LOOPBACK_HOST = /^(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/i;

/**
 * Starts the console on 127.0.0.1, at the port that is asked for if that is free and at any other if not. Nobody
 * signs in: it answers only requests that name this machine as host, which a page of a rebound domain cannot, and
 * is changed only by its own page. Rejects if no port can be had.
 */
export async function startConsole(instance: Instance, preferredPort: number): Promise<Console> {
  const files = await readFiles();
  const pages = followStore(instance);
  const routes = consoleRoutes(instance, pages.announce);

  const answer = async (request: IncomingMessage, url: URL): Promise<ApiResponse> => {
    const { method = 'GET', headers } = request;
    const route = findRoute(routes, method, url.pathname);
    if (route === undefined) throw notFound(`${method} ${url.pathname}`);
    if (method !== 'GET') requireOwnPage(request);
    const body = await readBody(request);
    return route.handler({ method, url, id: route.id, body, headers });
  };

  const server = createServer((request, response) => {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
    const fail = (error: unknown) => sendJson(response, asResponse(error));
    try {
      requireThisMachine(request);
      const address = `http://127.0.0.1${request.url}`;
      if (!URL.canParse(address)) throw notFound('The path');
      const url = new URL(address);
      const reading = request.method === 'GET' || request.method === 'HEAD';
      const file = reading ? files.get(url.pathname) : undefined;
      if (file !== undefined) response.writeHead(200, { 'content-type': file.type }).end(file.bytes);
      else if (request.method === 'GET' && url.pathname === '/api/live') pages.serve(response);
      else void answer(request, url).then((result) => sendJson(response, result), fail);
    } catch (error) {
      fail(error);
    }
  });
  server.requestTimeout = 10_000;
  const port = await listen(server, preferredPort)
    .catch(() => listen(server))
    .catch((error: unknown) => {
      pages.stop();
      throw error;
    });
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      pages.stop();
      await close(server);
    },
  };
}

/** Throws a 403 unless the request asks for this machine by name, and was not made by a page of another site. */
function requireThisMachine({ headers }: IncomingMessage): void {
  if (!LOOPBACK_HOST.test(headers.host ?? '')) {
    throw new ApiError(403, 'host_refused', 'The console answers only to localhost and 127.0.0.1.');
  }
  const site = headers['sec-fetch-site'];
  const isNavigation = headers['sec-fetch-mode'] === 'navigate';
  if (site !== undefined && site !== 'same-origin' && site !== 'none' && !isNavigation) {
    throw new ApiError(403, 'site_refused', 'The console answers only to its own page.');
  }
}

/** Throws a 403 unless a script of the console's own page sent the request, a 415 unless it sent JSON. */
function requireOwnPage({ headers }: IncomingMessage): void {
  if (headers.origin !== `http://${headers.host}`) {
    throw new ApiError(403, 'origin_refused', 'Only the console’s own page may change something.');
  }
  if (headers['content-type']?.split(';')[0]?.trim().toLowerCase() !== 'application/json') {
    throw new ApiError(415, 'content_type_refused', 'The body must be application/json.');
  }
}

function asResponse(error: unknown): ApiResponse {
  if (error instanceof ApiError) {
    return { status: error.status, body: { message: error.message, parameter: error.parameter } };
  }
  console.error('The console of the identity provider stand-in failed:', error);
  return { status: 500, body: { message: 'The console failed; the terminal says why.' } };
}

function sendJson(response: ServerResponse, { status = 200, body }: ApiResponse): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** Everything the page consists of, by path: no path of a request ever reaches the file system. */
async function readFiles(): Promise<ReadonlyMap<string, File>> {
  const files = new Map<string, File>();
  files.set('/preact.js', { type: 'text/javascript; charset=utf-8', bytes: await readFile(PREACT) });
  for (const name of await readdir(PAGE_FOLDER)) {
    const type = TYPES[extname(name)];
    if (type === undefined) continue;
    const bytes = await readFile(`${PAGE_FOLDER}${name}`);
    files.set(name === PAGE ? '/' : `/${name}`, { type, bytes });
  }
  return files;
}
