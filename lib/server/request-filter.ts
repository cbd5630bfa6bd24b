import type { IncomingMessage } from 'node:http';
import { parseAndValidateFlightRouterState } from 'next/dist/server/app-render/parse-and-validate-flight-router-state.js';
import { hasSdkActionHeaders } from '../idp/sdk-action';
import { allowedMethods, hasTooManyParameters, isApi, isProxied } from '../routing/paths';
import { BAD_REQUEST, METHOD_NOT_ALLOWED, type Rejection } from './rejection';

const NOT_FOUND: Rejection = { status: 404, message: 'Not found' };

/** What only the framework's own client and its own servers send, and no route of the API has a use for. */
const FRAMEWORK_HEADER = /^(?:rsc|next-.*|x-nextjs-.*|x-middleware-.*|x-action-.*)$/;

/** Of a page's state, far above what these pages have: deep ones take the framework half a second to read. */
const MAX_STATE_LENGTH = 8_000;
const MAX_STATE_DEPTH = 64;

function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (const character of text) {
    if (character === '[' || character === '{') deepest = Math.max(deepest, ++depth);
    if (character === ']' || character === '}') depth -= 1;
  }
  return deepest;
}

const methodNotAllowed = (methods: readonly string[]): Rejection => ({
  ...METHOD_NOT_ALLOWED,
  headers: { allow: methods.join(', ') },
});

const isSdkAction = ({ headers }: IncomingMessage): boolean =>
  hasSdkActionHeaders((name) => {
    const value = headers[name];
    return typeof value === 'string' ? value : undefined;
  });

/** What the framework's client says of the page that the browser shows: the framework fails over any that it cannot read. */
function hasReadableState({ headers }: IncomingMessage): boolean {
  const state = headers['next-router-state-tree'];
  if (state === undefined) return true;
  try {
    if (state.length > MAX_STATE_LENGTH || depthOf(decodeURIComponent(String(state))) > MAX_STATE_DEPTH)
      return false;
    parseAndValidateFlightRouterState(state);
    return true;
  } catch {
    return false;
  }
}

/**
 * Lets a request in only if it is one that this service serves: `undefined`. Whatever else the framework would make of it
 * is refused. Of an API request, what only the framework would read is dropped.
 */
export function rejectionFor(request: IncomingMessage): Rejection | undefined {
  const { method = '', url = '', headers } = request;
  const [pathname = ''] = url.split('?', 1);
  if (hasTooManyParameters(url.slice(pathname.length + 1))) return BAD_REQUEST;
  // `*`, or an address of another host; and what every request but the oldest must have (RFC 9112, 3.2).
  if (!url.startsWith('/') || (headers.host === undefined && request.httpVersion !== '1.0'))
    return BAD_REQUEST;
  const methods = allowedMethods(pathname);
  if (methods.length === 0) return NOT_FOUND;
  if (!methods.includes(method)) return methodNotAllowed(methods);
  if (method === 'POST' && !isApi(pathname) && !isProxied(pathname) && !isSdkAction(request)) {
    return methodNotAllowed(methods.filter((served) => served !== 'POST'));
  }
  if (isApi(pathname)) {
    for (const name of Object.keys(headers)) if (FRAMEWORK_HEADER.test(name)) delete headers[name];
  } else if (!hasReadableState(request)) return BAD_REQUEST;
  return undefined;
}
