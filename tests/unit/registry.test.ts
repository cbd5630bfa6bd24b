import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';

const File = z.object({ path: z.string(), target: z.string() });
const Item = z.object({
  name: z.string(),
  dependencies: z.array(z.string()).default([]),
  files: z.array(File),
});
const { items } = z.object({ items: z.array(Item) }).parse(JSON.parse(readFileSync('registry.json', 'utf8')));

/** The items and packages that an item needs in addition to `identity-link` and its configuration. */
const NEEDS: Readonly<Record<string, { readonly items?: string[]; readonly packages?: string[] }>> = {
  'identity-link-guard': { packages: ['@clerk/nextjs', 'next', 'react'] },
  'identity-link-register': { items: ['identity-link-guard'] },
  'identity-link-tenants': { items: ['identity-link-guard'], packages: ['next', 'react'] },
  'identity-link-webhook': { packages: ['next'] },
};
/** The Prisma client of the application. */
const CLIENT = 'lib/prisma';

test.each(items)(
  'The files of the shadcn item $name import only files of the items that it needs, and declared packages',
  ({ name, dependencies, files }) => {
    const needed = ['identity-link', 'identity-link-config', ...(NEEDS[name]?.items ?? []), name];
    const installed = items.filter((item) => needed.includes(item.name)).flatMap((item) => item.files);
    const targets = new Set(installed.map(({ target }) => target));
    const packages = [...dependencies, ...(NEEDS[name]?.packages ?? [])];
    const unknown = files.flatMap((file) =>
      Array.from(
        readFileSync(file.path, 'utf8').matchAll(/(?:from |import\()'([^']+)'/g),
        ([, from = '']) => from,
      ).filter((from) => {
        if (!from.startsWith('.'))
          return !from.startsWith('node:') && !packages.some((known) => `${from}/`.startsWith(`${known}/`));
        const imported = path.posix.join(path.posix.dirname(file.target), from);
        return imported !== CLIENT && !targets.has(`${imported}.ts`);
      }),
    );
    expect(unknown).toEqual([]);
  },
);
