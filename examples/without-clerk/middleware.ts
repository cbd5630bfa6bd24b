import { createMiddleware } from '#lib/middleware';
import { providers } from '#providers';

export default createMiddleware(providers);

// Excludes only static files. The default runtime (Edge) lacks node:crypto.
export const config = { runtime: 'nodejs', matcher: ['/((?!_next/static/).*)'] };
