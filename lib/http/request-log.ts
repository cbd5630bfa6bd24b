import { AsyncLocalStorage } from 'node:async_hooks';
import { describeError } from '../base/errors';
import { log } from '../base/log';
import { telemetry, withRequestSpan, withSpan } from '../base/telemetry';
import type { HandledRequest, Observer, RequestFields } from '../core/ports';
import { requestIdOf } from '../core/route';

const currentFields = new AsyncLocalStorage<RequestFields>();

/** Runs `work`. Calls of `addLogFields` during `work` write to `fields`. */
export function withLogFields<T>(fields: RequestFields, work: () => Promise<T>): Promise<T> {
  return currentFields.run(fields, work);
}

/** Adds fields to the log line of the current request. Has no effect outside of a call of `withLogFields`. */
export function addLogFields(fields: RequestFields): void {
  Object.assign(currentFields.getStore() ?? {}, fields);
}

/** Writes the log line of a request and records its metrics. A 503 is not an error, because its sender has logged the cause. */
function logRequest(request: HandledRequest): void {
  telemetry()?.recordRequest(request);
  const { requestId, method, route, status, ms, fields, error, quiet } = request;
  const line = {
    requestId,
    route: `${method} ${route}`.trimStart(),
    status,
    ms: Math.round(ms),
    ...fields,
    ...(status < 500 || status === 503 ? {} : { error: describeError(error) }),
  };
  const level = status < 500 || status === 503 ? 'info' : 'error';
  log[quiet && error === undefined ? 'debug' : level](line, 'request');
}

/** The log and the telemetry of this process. */
export const observer: Observer = {
  run: (fields, headers, work) => withRequestSpan(headers, () => withLogFields(fields, work)),
  note: addLogFields,
  span: withSpan,
  handled: logRequest,
};

/** Runs the lookup of the user of a page or a server action, and logs it. Within a route, only adds fields to its line. */
export async function logUserLookup<T>(headers: Pick<Headers, 'get'>, work: () => Promise<T>): Promise<T> {
  if (currentFields.getStore()) return work();
  const startedAt = performance.now();
  const fields: RequestFields = {};
  return withRequestSpan(headers, async () => {
    try {
      return await withLogFields(fields, work);
    } finally {
      telemetry()?.recordPageUser(fields);
      const requestId = requestIdOf(headers.get('x-request-id'));
      log.info({ requestId, ms: Math.round(performance.now() - startedAt), ...fields }, 'user');
    }
  });
}
