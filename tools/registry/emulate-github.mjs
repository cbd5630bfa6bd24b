/**
 * Replaces `fetch` in a process that imports this module (NODE_OPTIONS=--import). For a URL of raw.githubusercontent.com, which
 * contains an owner, a repository, a commit and a path, returns the file with this path in the folder CHECKOUT.
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
