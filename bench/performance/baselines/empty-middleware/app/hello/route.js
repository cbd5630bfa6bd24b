/** The same route as that of `bare`: what differs is the middleware in front of it. */
export const dynamic = 'force-dynamic';

export const GET = () => Response.json({ hello: 'world' });
