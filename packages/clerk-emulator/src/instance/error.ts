/**
 * An error response. `code` is Clerk's error code, or a code of the emulator if Clerk does not have this error. `parameter` is
 * the name of the invalid field.
 */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly parameter?: string,
  ) {
    super(message);
  }
}

/** Returns an ApiError with the status 404 for a resource or a route that does not exist. */
export function notFound(what: string): ApiError {
  return new ApiError(404, 'resource_not_found', `${what} was not found.`);
}
