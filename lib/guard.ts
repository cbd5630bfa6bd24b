import type { NextRequest } from 'next/server';
import { createGuards } from './core/guard';
import { route } from './http/route';
import { PAGE_PATH, readVerdict } from './http/signed-verdict';
import { link } from './link';

/** Returns the signed verdict of the middleware. */
function authenticate({ headers }: NextRequest) {
  // The middleware then did not check the origin of the cookies.
  if (headers.get(PAGE_PATH) !== null) throw new Error('The middleware treated a route as a page');
  return readVerdict(headers);
}

export const { guard, guardBy, guardTenant } = createGuards(link, { authenticate }, route);
