import { createReadStream, createWriteStream, existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress } from 'node:zlib';
import type { LaunchOptions } from 'playwright';
import { extract } from 'tar';

/** npm package that contains Chromium for Linux x64. */
const PACKAGE = '@sparticuz/chromium';
/** Folder that contains the unpacked browser (190 MB). Git ignores the folder. Later runs reuse the browser. */
const FOLDER = path.resolve('.local/chromium');

/**
 * Font configuration. It prefers the font of the package over system fonts, so that a page looks the same on every machine that
 * uses the package.
 */
const FONTS = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${FOLDER}/unpacked/fonts</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir>${FOLDER}/font-cache</cachedir>
  <alias><family>sans-serif</family><prefer><family>Open Sans</family></prefer></alias>
  <alias><family>system-ui</family><prefer><family>Open Sans</family></prefer></alias>
</fontconfig>
`;

/** Unpacks the browser, its system libraries and a font into a folder. Writes a font configuration to the same folder. */
async function unpack(into: string): Promise<void> {
  // The package does not export its `bin` folder. The entry point of the package is two folders below the package's root.
  const bin = path.resolve(createRequire(import.meta.url).resolve(PACKAGE), '../../../bin');
  const packed = (name: string) => createReadStream(path.join(bin, name));
  const executable = createWriteStream(path.join(into, 'chromium'), { mode: 0o755 });
  await pipeline(packed('chromium.br'), createBrotliDecompress(), executable);
  for (const name of ['al2023.tar.br', 'fonts.tar.br']) {
    await pipeline(packed(name), createBrotliDecompress(), extract({ cwd: into }));
  }
  await writeFile(path.join(into, 'fonts.conf'), FONTS);
}

/**
 * Returns the folder of the unpacked browser and unpacks the browser if necessary. If several processes unpack the browser
 * concurrently, all use the folder of the process that finishes first.
 */
async function unpacked(): Promise<string> {
  const target = path.join(FOLDER, 'unpacked');
  if (existsSync(target)) return target;
  await mkdir(FOLDER, { recursive: true });
  const temporary = await mkdtemp(path.join(FOLDER, '.unpacking-'));
  try {
    await unpack(temporary);
    await rename(temporary, target).catch((error: unknown) => {
      if (!existsSync(target)) throw error;
    });
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
  return target;
}

const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/**
 * Returns the launch options of Playwright for Chromium. On Linux x64, Chromium comes from an npm package. On other platforms,
 * Playwright's own Chromium is used (`npx playwright install chromium`).
 */
export async function chromiumOptions(): Promise<LaunchOptions> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return { args: ARGUMENTS };
  const folder = await unpacked();
  return {
    executablePath: path.join(folder, 'chromium'),
    args: ARGUMENTS,
    env: { ...process.env, LD_LIBRARY_PATH: path.join(folder, 'lib'), FONTCONFIG_PATH: folder },
  };
}
