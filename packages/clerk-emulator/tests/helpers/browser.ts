import path from 'node:path';
import type { LaunchOptions } from 'playwright';

const CACHE = path.resolve(import.meta.dirname, '../../node_modules/.cache');

/** Folder of the unpacked Chromium. */
export const CHROMIUM_FOLDER = path.join(CACHE, 'chromium');
/** On Linux x64, Chromium comes from an npm package. On other platforms, Playwright's own Chromium is used. */
export const isChromiumPackaged = process.platform === 'linux' && process.arch === 'x64';

export const LAUNCH_OPTIONS: LaunchOptions = {
  args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'],
  ...(isChromiumPackaged && {
    executablePath: path.join(CHROMIUM_FOLDER, 'chromium'),
    env: {
      ...process.env,
      LD_LIBRARY_PATH: path.join(CHROMIUM_FOLDER, 'lib'),
      FONTCONFIG_PATH: path.join(CHROMIUM_FOLDER, 'fonts'),
    },
  }),
};
