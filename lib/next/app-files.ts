import { readdirSync } from 'node:fs';

/** Kinds of folder names. Next.js tries them in this order at each segment of a path. */
const SEGMENTS = [
  { start: /^[^[]/, pattern: (name: string) => `/${name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}` },
  { start: /^\[[^[.]/, pattern: () => '/([^/]+)' },
  { start: /^\[\.\.\./, pattern: () => '/(.+)' },
  { start: /^\[\[/, pattern: () => '(?:/.+)?' },
];

/**
 * Returns the pages and routes of app/, one in a line, as `page <pattern of the path>`, in the order in which Next.js tries them.
 */
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
