import { expect, test } from 'vitest';
import { builtItem, copiedFiles, registryIndex } from '../../tools/registry/build';

// The registry contains files of lib/ that the shadcn CLI copies into another application.
test('The registry contains the present files of lib (`npm run registry` updates it)', async () => {
  for (const [file, text] of copiedFiles()) await expect(text).toMatchFileSnapshot(`../../${file}`);
  await expect(registryIndex()).toMatchFileSnapshot('../../registry.json');
  await expect(builtItem()).toMatchFileSnapshot('../../registry/identity-link.json');
});

test('The registry item has at most 12 files and 350 lines', () => {
  const lines = Array.from(
    builtItem().matchAll(/"content": "(.*)"/g),
    ([, content = '']) => content.split('\\n').length - 1,
  );
  expect(lines.length).toBeLessThanOrEqual(12);
  expect(lines.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(350);
});
