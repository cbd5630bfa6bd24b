import path from 'node:path';

const CACHE = path.resolve(import.meta.dirname, '../../node_modules/.cache');

/** Cache folder of the browser SDK. */
export const CLERK_JS_FOLDER = path.join(CACHE, 'clerk-emulator');
/** Folder of the unpacked Chromium. */
export const CHROMIUM_FOLDER = path.join(CACHE, 'chromium');
/** On Linux x64, Chromium comes from an npm package. On other platforms, Playwright's own Chromium is used. */
export const isChromiumPackaged = process.platform === 'linux' && process.arch === 'x64';
