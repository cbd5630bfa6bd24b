import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { z } from 'zod';
import { BUILD_FOLDER } from '../../tests/harness/build';
import type { Figures } from './figures';
import type { Server } from './launch';
import { service, type Target } from './targets';

const PAGES = ['/', '/sign-in'];
const FUNCTIONS = {
  middleware: 'middleware.js',
  'GET /users/v1/me': 'app/users/v1/me/route.js',
  'POST /auth/v1/register': 'app/auth/v1/register/route.js',
  'POST /webhooks/idp/v1/user-created': 'app/webhooks/idp/v1/user-created/route.js',
  'GET /': 'app/page.js',
};

const Trace = z.object({ files: z.array(z.string()) });
const bytesOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

/** Returns the size of the server files without source maps. */
function serverBytes(folder: string): number {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => !name.endsWith('.map'))
    .map((name) => path.join(folder, name))
    .filter((file) => statSync(file).isFile())
    .reduce((total, file) => total + bytesOf(file), 0);
}

/** Returns the size of a file and its traced dependencies. A platform deploys these files as one serverless function. */
function functionBytes(file: string): number {
  const { files } = Trace.parse(JSON.parse(readFileSync(`${file}.nft.json`, 'utf8')));
  return [...files.map((each) => path.resolve(path.dirname(file), each)), file].reduce(
    (total, each) => total + (each.endsWith('.map') ? 0 : bytesOf(each)),
    0,
  );
}

/**
 * Counts the scripts of a page, separately for the service and the identity provider. Measures the total gzip size of the
 * service's scripts.
 */
async function measurePageScripts(url: string, page: string) {
  const html = await (await fetch(url + page)).text();
  const sources = [...html.matchAll(/<script\b[^>]*\bsrc="([^"]+)"/g)].map(([, source = '']) => source);
  const ownSources = sources.filter((source) => source.startsWith('/'));
  let bytes = 0;
  for (const source of ownSources) {
    const script = await (await fetch(url + source)).arrayBuffer();
    bytes += gzipSync(Buffer.from(script)).length;
  }
  return {
    path: page,
    scripts: ownSources.length,
    kilobytes: bytes / 1024,
    ofTheProvider: sources.length - ownSources.length,
  };
}

export async function measureSizes(
  start: (target: Target) => Promise<Server>,
): Promise<NonNullable<Figures['sizes']>> {
  const folder = path.join(BUILD_FOLDER, 'server');
  const { url, stop } = await start(service);
  const pages = [];
  for (const page of PAGES) pages.push(await measurePageScripts(url, page));
  await stop();
  const megabytes = (bytes: number) => bytes / 1024 / 1024;
  return {
    serverMegabytes: megabytes(serverBytes(folder)),
    functions: Object.fromEntries(
      Object.entries(FUNCTIONS).map(([name, file]) => [
        name,
        megabytes(functionBytes(path.join(folder, file))),
      ]),
    ),
    pages,
  };
}
