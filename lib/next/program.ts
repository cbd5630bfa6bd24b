import { createRequire } from 'node:module';

/** Path of the command-line program of Next.js. */
export const NEXT_PROGRAM = createRequire(import.meta.url).resolve('next/dist/bin/next');

/** Lets child processes load the .env files that this process has loaded. Next.js would skip them, and not print their names. */
export function reloadEnvInChildren(): void {
  delete process.env['__NEXT_PROCESSED_ENV'];
}
