import { randomUUID } from 'node:crypto';
import type { HandledRequest, RequestLogFields } from '#lib/telemetry/port';
import { configuration } from './configuration';

// The service writes log lines here.
export const addLogFields = (_fields: RequestLogFields): void => undefined;
export const withLogFields = <T>(_fields: RequestLogFields, work: () => Promise<T>): Promise<T> => work();
export const logUserLookup = <T>(_headers: Pick<Headers, 'get'>, work: () => Promise<T>): Promise<T> =>
  work();
export const requestIdOf = (header: string | null): string =>
  header !== null && /^[\w.:-]{1,64}$/.test(header) ? header : randomUUID();

/** Reports the error behind a 500. */
export function logRequest({ method, route, status, error }: HandledRequest): void {
  if (status >= 500 && error !== undefined) configuration().onError(error, `${method} ${route}`);
}
