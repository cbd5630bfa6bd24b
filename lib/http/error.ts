/** An answer other than success. The message is public: it helps the caller and tells nothing else. */
export class HttpError extends Error {
  constructor(
    readonly status: 400 | 401 | 403 | 404 | 405 | 409 | 413 | 422 | 429,
    message: string,
  ) {
    super(message);
    this.name = 'HttpError';
  }
}
