/**
 * Prepares the process. Next.js calls this function once per process, before the first request. `start` ends the process if the
 * environment variables (docs/contract.md, 8.2) or the list of providers are invalid.
 */
export async function register(): Promise<void> {
  if (process.env['NEXT_RUNTIME'] === 'nodejs')
    await (await import('#lib/start')).start(() => import('#providers'));
}
