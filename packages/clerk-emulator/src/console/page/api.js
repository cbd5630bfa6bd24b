// @ts-check

/** What went wrong, in words for the person at the page; `parameter` names the field that is at fault. */
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

const BOUND_MILLISECONDS = 10_000;

/**
 * Asks the console's server to do something and returns its answer. Throws a {@link CallError} if it refuses or is gone.
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
    signal: AbortSignal.timeout(BOUND_MILLISECONDS),
  }).catch(() => {
    throw new CallError('The stack does not answer. Is it still running?');
  });
  const answer = await response.json().catch(() => ({ message: `The console answered ${response.status}.` }));
  if (response.ok) return answer;
  throw new CallError(String(answer.message), answer.parameter);
}
