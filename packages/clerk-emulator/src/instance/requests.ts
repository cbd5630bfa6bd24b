import { newId } from './ids';

/** A request to the Frontend API or the Backend API. Contains no query, header or body, because these may contain secrets. */
export interface LoggedRequest {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  /** Time when the request arrived, in milliseconds since 1970. */
  readonly at: number;
  readonly durationMilliseconds: number;
}

const MAX_REQUESTS = 200;
/** Longer paths are cut to save memory, because clients choose the length of a path. */
const MAX_PATH_LENGTH = 200;

/** Returns an empty log of the last requests to both APIs, oldest first. It is only in memory. It calls `changed` after each request. */
export function requestLog(changed: () => void) {
  const requests: LoggedRequest[] = [];
  return {
    add(request: Omit<LoggedRequest, 'id'>): void {
      requests.push({ ...request, id: newId('req'), path: request.path.slice(0, MAX_PATH_LENGTH) });
      if (requests.length > MAX_REQUESTS) requests.shift();
      changed();
    },
    all: () => [...requests],
  };
}
