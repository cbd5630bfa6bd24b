import { NextResponse } from 'next/server';

/** Does nothing: what Next.js asks for having a middleware at all. */
export default function middleware() {
  return NextResponse.next();
}

export const config = { runtime: 'nodejs', matcher: ['/((?!_next/static/).*)'] };
