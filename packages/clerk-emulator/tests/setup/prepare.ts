import {
  createReadStream,
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress } from 'node:zlib';
import { extract } from 'tar';
import { prefetchClerkJs } from '../../src/clerk-js';
import { CHROMIUM_FOLDER, CLERK_JS_FOLDER, isChromiumPackaged } from '../helpers/folders';

/** Configuration of the fonts in the package. */
const FONTS = `<?xml version="1.0"?>
<fontconfig><dir>${CHROMIUM_FOLDER}/fonts</dir><cachedir>${CHROMIUM_FOLDER}/cache</cachedir></fontconfig>`;

/** Unpacks Chromium and its system libraries and fonts from an npm package. */
async function unpackChromium(): Promise<void> {
  mkdirSync(path.dirname(CHROMIUM_FOLDER), { recursive: true });
  const folder = mkdtempSync(`${CHROMIUM_FOLDER}-`);
  // The package does not export its `bin` folder. The entry point of the package is two folders below the package's root.
  const bin = path.resolve(createRequire(import.meta.url).resolve('@sparticuz/chromium'), '../../../bin');
  const unpack = (name: string, into: NodeJS.WritableStream) =>
    pipeline(createReadStream(path.join(bin, name)), createBrotliDecompress(), into);
  await unpack('chromium.br', createWriteStream(path.join(folder, 'chromium'), { mode: 0o755 }));
  for (const name of ['al2023.tar.br', 'fonts.tar.br']) await unpack(name, extract({ cwd: folder }));
  writeFileSync(path.join(folder, 'fonts.conf'), FONTS);
  renameSync(folder, CHROMIUM_FOLDER);
}

/** Builds the package, and fills the caches of the browser SDK and of Chromium. */
export default async function prepare(): Promise<void> {
  await import('../../build.mjs');
  await prefetchClerkJs(CLERK_JS_FOLDER);
  if (isChromiumPackaged && !existsSync(CHROMIUM_FOLDER)) await unpackChromium();
}
