/** A response of the service and what is known of its request. */
export interface SeenResponse {
  readonly method: string;
  /** Path of the request without the query. Undefined if the path is not known. */
  readonly pathname: string | undefined;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

let watch: (response: SeenResponse) => void = () => undefined;

/**
 * Sets the function that receives every later response. The helpers that send requests pass their responses to
 * `recordResponse`.
 */
export function watchResponses(watcher: (response: SeenResponse) => void): void {
  watch = watcher;
}

/** Reports a response to the watcher. */
export const recordResponse = (response: SeenResponse): void => watch(response);
