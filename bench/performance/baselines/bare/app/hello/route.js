/** The reference of every ratio: what Next.js itself costs. */
export const dynamic = 'force-dynamic';

export const GET = () => Response.json({ hello: 'world' });
