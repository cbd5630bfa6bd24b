import type { NextRequest } from 'next/server';
import { createRoute, type RouteHandler as Handler, type RouteContext } from '../core/route';
import { observer } from './request-log';

export { json } from '../core/route';
export type { RouteContext };
export type RouteHandler<C extends RouteContext> = Handler<C, NextRequest>;

// Not of lib/link.ts, because a health check needs neither a store nor a cache.
export const route = createRoute<NextRequest>(observer, async (error) => {
  // Next.js implements `redirect()` and `notFound()` with errors, which it must catch.
  const { unstable_rethrow } = await import('next/navigation');
  unstable_rethrow(error);
});
