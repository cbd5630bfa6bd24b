/** The reference: a route that only returns JSON. Other CPU times are multiples of its CPU time. */
export const dynamic = 'force-dynamic';

export const GET = () => Response.json({ hello: 'world' });
export const POST = GET;
