/**
 * Replaces `fetch` in a process that imports this module (NODE_OPTIONS=--import). The URL of a file at raw.githubusercontent.com
 * contains an owner, a repository, a commit and a path. For such a URL, `fetch` sends no request. It returns the file at this
 * path in a checkout. The environment variable CHECKOUT contains the folder of the checkout.
 */
import { readFile } from 'node:fs/promises';
import path from 'node:path';

const { fetch: realFetch } = globalThis;

globalThis.fetch = async (input, init) => {
  const { hostname, pathname } = new URL(input instanceof Request ? input.url : input);
  if (hostname !== 'raw.githubusercontent.com') return realFetch(input, init);
  const [, _owner, _repository, _commit, ...file] = pathname.split('/');
  return readFile(path.join(process.env['CHECKOUT'] ?? '', ...file)).then(
    (content) => new Response(content),
    () => new Response(null, { status: 404 }),
  );
};
