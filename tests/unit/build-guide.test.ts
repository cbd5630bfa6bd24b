import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const GUIDE = 'docs/build.md';
/** Languages of the code blocks that contain commands. These blocks are not quoted from a file. */
const NOT_QUOTED = new Set(['sh', 'console']);

/**
 * Returns the code blocks of the guide that do not contain commands. `file` is the last file in examples/ or tools/ that the
 * text above the block links to.
 */
function quotedBlocks(): { file: string; code: string }[] {
  const text = readFileSync(GUIDE, 'utf8');
  return [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)]
    .filter(([, language = '']) => !NOT_QUOTED.has(language))
    .map(({ 2: code = '', index }) => {
      const links = text
        .slice(0, index)
        .matchAll(/\]\(\.\.\/((?:examples|tools)\/(?:[^\s()]|\([^)]*\))+)\)/g);
      return { file: [...links].at(-1)?.[1] ?? '', code };
    });
}

test.each(quotedBlocks())('A code block of docs/build.md is an exact part of $file', ({ file, code }) => {
  expect(readFileSync(file, 'utf8')).toContain(code);
});

test('Each file that docs/build.md links to exists', () => {
  const links = [...readFileSync(GUIDE, 'utf8').matchAll(/\]\(((?:[^():\s]|\([^)]*\))+?)(?:#[^)]*)?\)/g)].map(
    ([, link = '']) => link,
  );
  expect(links.filter((link) => !existsSync(path.join('docs', link)))).toEqual([]);
});
