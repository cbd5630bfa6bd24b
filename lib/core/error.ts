/** All copies of this module in a process share the mark, so each recognizes the errors of the others. */
const MARK: unique symbol = Symbol.for('identity-link.HttpError');

/** Error that becomes a response with its `status`. The message is public, so it must not contain internal details. */
export class HttpError extends Error {
  readonly [MARK] = true;

  constructor(
    readonly status: 400 | 401 | 403 | 404 | 405 | 409 | 413 | 422 | 429 | 503,
    message: string,
    /** Headers of the response. */
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.name = 'HttpError';
  }
}

/** Returns true for an HttpError, also for one of another copy of this module. */
export const isHttpError = (error: unknown): error is HttpError => MARK in Object(error);
