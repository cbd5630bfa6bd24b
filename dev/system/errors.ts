/** Returns the `code` of an error, such as ENOENT, or undefined if the value is not an error with a string `code`. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** Returns a message to print for any thrown value. It is not empty: some errors of Node.js have only a code or a cause. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, name, cause = name } = error;
  return message || errorCode(error) || messageOf(cause);
}
