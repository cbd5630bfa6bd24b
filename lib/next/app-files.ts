import { readdirSync } from 'node:fs';

/** Kinds of folder names. Next.js tries them in this order at each segment of a path. */
const SEGMENTS = [
  { start: /^[^[]/, pattern: (name: string) => `/${name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}` },
  { start: /^\[[^[.]/, pattern: () => '/([^/]+)' },
  { start: /^\[\.\.\./, pattern: () => '/(.+)' },
  { start: /^\[\[/, pattern: () => '(?:/.+)?' },
];

/** Returns the pages and routes of app/ as lines `page <pattern of the path>`, in the order in which Next.js tries them. */
export function listAppFiles(): string {
  const files = readdirSync(/* turbopackIgnore: true */ 'app', { recursive: true, encoding: 'utf8' });
  return files
    .flatMap((file) => {
      const [, folder, kind] = /^(.*)\/(page|route)\.[jt]sx?$/.exec(`/${file.replaceAll('\\', '/')}`) ?? [];
      // A folder `_name` is private.
      if (folder === undefined || folder.includes('/_')) return [];
      // Groups `(name)` and slots `@name` are not part of the path. Next.js decodes the names of the other folders.
      const names = folder.split('/').filter((name) => !/^(?:\(.*\)|@.*|)$/.test(name));
      const segments = names.map(decodeURIComponent).map((name) => {
        const rank = SEGMENTS.findIndex(({ start }) => start.test(name));
        return { rank, pattern: SEGMENTS[rank]?.pattern(name) };
      });
      const join = (key: 'rank' | 'pattern') => segments.map((segment) => segment[key]).join('');
      const line = `${kind} ${join('pattern')}`;
      return [{ line, order: `${join('rank')} ${line}` }];
    })
    .sort((one, other) => (one.order < other.order ? -1 : 1))
    .map(({ line }) => line)
    .join('\n');
}

/** Parses the list of `listAppFiles`. */
const parse = (list: string) =>
  list
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const [kind, pattern] = line.split(/ (.*)/);
      return { isRoute: kind === 'route', path: new RegExp(`^${pattern}/?$`, 's') };
    });

/** next.config.ts sets the variable in a build. */
const FILES = parse(process.env['APP_FILES'] ?? '');

/** Returns the page or route of app/ that Next.js chooses for a path. Under `next dev`, reads app/ again. */
export function appFileOf(decodedPath: string): { readonly isRoute: boolean } | undefined {
  const files = process.env.NODE_ENV === 'development' ? parse(listAppFiles()) : FILES;
  return files.find(({ path }) => path.test(decodedPath));
}

/** Paths that Next.js would serve as another spelling of a route. */
const ALIASES = [
  /\.rsc$/,
  /\.segments\//,
  // Dot segments, also encoded.
  /\/(?:\.|%2e){1,2}(?:\/|$)/i,
  /\/\//,
  /[\\#]/,
  // Encoded letters, digits and `-._~`, which need no encoding, and encoded slashes and backslashes.
  /%(?:[46][1-9a-f]|[57][\da]|3\d|2[def]|5[cf]|7e)/i,
];
/** Internal paths of Next.js, unless app/ has a file for the path. */
const INTERNAL = /^\/_(?!next\/static\/|_clerk\/)/;

/** Returns true if Next.js would serve the path as another spelling of a route, or itself. */
export const isAlias = (pathname: string): boolean =>
  ALIASES.some((alias) => alias.test(pathname)) ||
  (INTERNAL.test(pathname) && appFileOf(decodeURIComponent(pathname)) === undefined);
