import { requestIdOf } from '../core/route';
import { observer } from './request-log';

/** Messages of the responses to requests that reach no route. */
const REJECTIONS = {
  400: 'Bad request',
  404: 'Not found',
  405: 'Method not allowed',
  408: 'Request timeout',
  411: 'Length required',
  413: 'Payload too large',
  431: 'Request header fields too large',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
} as const;

export type RejectionStatus = keyof typeof REJECTIONS;

/** Logs a request that reaches no route, without its address, and returns the headers and the body of the response. */
export function rejection(status: RejectionStatus, givenRequestId?: unknown, error?: unknown) {
  const requestId = requestIdOf(givenRequestId);
  const request = { requestId, method: '', route: 'none', status, ms: 0, fields: {}, quiet: false };
  observer.handled({ ...request, error });
  const body = JSON.stringify({ message: REJECTIONS[status] });
  const headers = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'x-request-id': requestId,
    ...(status === 503 ? { 'retry-after': '1' } : {}),
    ...(status === 405 ? { allow: 'DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT' } : {}),
  };
  return { headers, body };
}
