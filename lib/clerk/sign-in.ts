import { redirect } from 'next/navigation';
import { HttpError } from '../core/error';
import { PAGE_PATH } from './verdict';

/** Redirects from a page to the sign-in page, which returns the browser to the page. In a route, throws an HttpError 401. */
export function redirectToSignIn(headers: Pick<Headers, 'get'>): never {
  const path = headers.get(PAGE_PATH);
  if (path === null) throw new HttpError(401, 'Unauthorized');
  redirect(`/sign-in?redirect_url=${encodeURIComponent(path)}`);
}
