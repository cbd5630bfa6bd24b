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

/** Packages that each application has before the installation. */
const PACKAGES = ['@clerk/nextjs', 'next', 'react'];
/** The Prisma client of the application. */
const CLIENT = 'lib/prisma';
const targets = new Set(items.flatMap(({ files }) => files.map(({ target }) => target)));

test.each(items)(
  'The files of the shadcn item $name import only installed files and declared packages',
  (item) => {
    const known = [...PACKAGES, ...item.dependencies];
    const unknown = item.files.flatMap((file) =>
      Array.from(
        readFileSync(file.path, 'utf8').matchAll(/(?:from |import\()'([^']+)'/g),
        ([, from = '']) => from,
      ).filter((from) => {
        if (!from.startsWith('.'))
          return !from.startsWith('node:') && !known.some((name) => `${from}/`.startsWith(`${name}/`));
        const imported = path.posix.join(path.posix.dirname(file.target), from);
        return imported !== CLIENT && !targets.has(`${imported}.ts`);
      }),
    );
    expect(unknown).toEqual([]);
  },
);

test('The shadcn item identity-link has at most 18 files and 800 lines', () => {
  const files = items[0]?.files ?? [];
  const lines = files.flatMap((file) => readFileSync(file.path, 'utf8').match(/\S.*$/gm) ?? []);
  expect(files.length).toBeLessThanOrEqual(18);
  expect(lines.length).toBeLessThanOrEqual(800);
});
