import type { NextRequest } from 'next/server';
import { HttpError } from '#lib/http/error';
import { route } from '#lib/http/route';
import { auth } from '../../../../providers/better-auth/auth';

/** Cookies of a session at Clerk. */
const OF_CLERK = /^__(?:session|client_uat|clerk_db_jwt|refresh)(?:_|$)/;

/** Deletes the cookies of Clerk. Clerk sets some for the whole domain, and a browser deletes a cookie only with its domain. */
function deleteClerkCookies({ cookies, nextUrl: { hostname } }: NextRequest, response: Response): void {
  const domains = hostname.split('.').flatMap((_label, index, labels) => {
    const domain = labels.slice(index).join('.');
    return domain.includes('.') ? [`; Domain=${domain}`] : [];
  });
  for (const { name } of cookies.getAll())
    if (OF_CLERK.test(name))
      for (const domain of ['', ...domains])
        response.headers.append('set-cookie', `${name}=; Path=/; Max-Age=0${domain}`);
}

/** The API of Better Auth. After a sign-in here, pages would otherwise redirect the browser to Clerk first. */
const handler = route(
  async (request) => {
    const response = await auth().handler(request);
    // The library responds to an unknown path with an empty body.
    if (response.status === 404) throw new HttpError(404, 'Not found');
    const signsIn = /\/sign-(?:in|up)\//.test(request.nextUrl.pathname);
    if (signsIn && response.ok) deleteClerkCookies(request, response);
    return response;
  },
  { name: '/api/auth/[...all]' },
);

export { handler as GET, handler as POST };
