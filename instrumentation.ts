/**
 * Next.js calls this function once per process, before the first request. A process with invalid environment variables does
 * not start (docs/contract.md, 8.2).
 */
export async function register(): Promise<void> {
  if (process.env['NEXT_RUNTIME'] === 'nodejs') await (await import('./lib/server/start')).start();
}
