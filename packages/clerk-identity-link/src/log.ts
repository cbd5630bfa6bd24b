import { randomUUID } from 'node:crypto';
import { configuration } from './configuration';

/** The service logs these fields of a request. */
export interface RequestLogFields {
  cache?: 'hit' | 'miss' | 'bypass';
  caller?: 'created' | 'existing';
  registered?: 'created' | 'existing' | 'forgotten';
  reason?: string;
  impersonated?: true;
  eventType?: string;
  messageId?: string;
}

// The service writes log lines and spans here.
export const addLogFields = (_fields: RequestLogFields): void => undefined;
export const withLogFields = <T>(_fields: RequestLogFields, work: () => Promise<T>): Promise<T> => work();
export const withSpan = <T>(_name: string, work: () => Promise<T>, _outcomeOf: (result: T) => string) =>
  work();
export const logUserLookup = <T>(_headers: Pick<Headers, 'get'>, work: () => Promise<T>): Promise<T> =>
  work();
export const requestIdOf = (header: string | null): string =>
  header !== null && /^[\w.:-]{1,64}$/.test(header) ? header : randomUUID();

interface HandledRequest {
  readonly requestId: string;
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly ms: number;
  readonly fields: RequestLogFields;
  readonly error?: unknown;
  readonly quiet: boolean;
}

/** Reports the error behind a 500. */
export function logRequest({ method, route, status, error }: HandledRequest): void {
  if (status >= 500 && error !== undefined) configuration().onError(error, `${method} ${route}`);
}
