import { expect, test } from 'vitest';
import { z } from 'zod';
import { builtItem, copiedFiles, itemNames, registryIndex } from '../../tools/registry/build';
import { PACKAGES } from '../../tools/registry/hosts';

const Item = z.object({
  dependencies: z.array(z.string()).default([]),
  files: z.array(z.object({ content: z.string() })),
});
const parseItem = (name: string) => Item.parse(JSON.parse(builtItem(name)));

// The registry contains files of lib/ that the shadcn CLI copies into another application.
test('The registry contains the current files of lib (`npm run registry` updates it)', async () => {
  for (const [file, text] of copiedFiles()) await expect(text).toMatchFileSnapshot(`../../${file}`);
  await expect(registryIndex()).toMatchFileSnapshot('../../registry.json');
  for (const name of itemNames)
    await expect(builtItem(name)).toMatchFileSnapshot(`../../registry/${name}.json`);
});

test('The registry item identity-link has at most 12 files, at most 350 lines and no dependencies', () => {
  const { dependencies, files } = parseItem('identity-link');
  expect(dependencies).toEqual([]);
  expect(files.length).toBeLessThanOrEqual(12);
  const lines = files.map(({ content }) => content.split('\n').length - 1);
  expect(lines.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(350);
});

test.each(itemNames)(
  'The registry item %s imports only packages that it declares or that each application has',
  (name) => {
    const { dependencies, files } = parseItem(name);
    const imported = files.flatMap(({ content }) =>
      Array.from(content.matchAll(/ from '((?:@[\w-]+\/)?\w[\w:-]*)/g), ([, from = '']) => from),
    );
    const known = [...PACKAGES, ...dependencies];
    expect(imported.filter((from) => !from.startsWith('node:') && !known.includes(from))).toEqual([]);
  },
);
