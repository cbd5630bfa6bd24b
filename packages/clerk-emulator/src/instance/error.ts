/** What was asked for cannot be done, in the provider's codes. */
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

/** The 404 of a resource or a route that does not exist. */
export function notFound(what: string): ApiError {
  return new ApiError(404, 'resource_not_found', `${what} was not found.`);
}
