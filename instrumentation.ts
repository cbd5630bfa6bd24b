/** Runs once before the first request. A process with an invalid environment does not start (contract 8.2). */
export async function register(): Promise<void> {
  if (process.env['NEXT_RUNTIME'] === 'nodejs') await (await import('./lib/server/start')).start();
}
