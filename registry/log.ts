import { randomUUID } from 'node:crypto';
import { logError } from '../../identity-link.config';

/** What identity-link reports about a request, for example `{ cache: 'hit', caller: 'created' }`. */
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
  if (status >= 500) logError(error, `${method} ${route}`);
}
