/** The same route as in the application `bare`. In this application, a request passes a middleware first. */
export const dynamic = 'force-dynamic';

export const GET = () => Response.json({ hello: 'world' });
