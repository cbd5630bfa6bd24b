/** Minimal route. The benchmark reports the cost of other requests as a multiple of the cost of this route. */
export const dynamic = 'force-dynamic';

export const GET = () => Response.json({ hello: 'world' });
