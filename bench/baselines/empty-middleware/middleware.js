import { NextResponse } from 'next/server';

/** Measures the overhead of a middleware in Next.js. */
export default function middleware() {
  return NextResponse.next();
}

export const config = { runtime: 'nodejs', matcher: ['/((?!_next/static/).*)'] };
