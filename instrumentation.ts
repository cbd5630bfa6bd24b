/**
 * Prepares the process. Next.js calls this function once per process, before the first request. `start` ends the process if the
 * environment variables are invalid (docs/contract.md, 8.2).
 */
export async function register(): Promise<void> {
  if (process.env['NEXT_RUNTIME'] === 'nodejs') await (await import('#lib/start')).start();
}
