// @ts-check

/** An error with a message for the user. `parameter` names the invalid field. */
export class CallError extends Error {
  /**
   * @param {string} message
   * @param {string} [parameter]
   */
  constructor(message, parameter) {
    super(message);
    this.parameter = parameter;
  }
}

const TIMEOUT_MILLISECONDS = 10_000;

/**
 * Calls the server of the emulator's console. The console consists of this server and the web page that loads this file. Returns
 * the response body. Throws a {@link CallError} if the call fails.
 * @param {'GET' | 'POST' | 'PATCH' | 'DELETE'} method
 * @param {string} path
 * @param {unknown} [body]
 */
export async function call(method, path, body = {}) {
  const init =
    method === 'GET' ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  const response = await fetch(path, {
    method,
    ...init,
    signal: AbortSignal.timeout(TIMEOUT_MILLISECONDS),
  }).catch(() => {
    throw new CallError('The emulator does not respond. Is it still running?');
  });
  const answer = await response.json().catch(() => ({ message: `The console returned ${response.status}.` }));
  if (response.ok) return answer;
  throw new CallError(String(answer.message), answer.parameter);
}
