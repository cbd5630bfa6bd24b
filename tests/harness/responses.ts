/** A response of the service, with the method and the path of its request. */
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
 * Sets the function that receives every later response, and replaces the previous function. The helpers that send requests pass
 * each response to `recordResponse`.
 */
export function watchResponses(watcher: (response: SeenResponse) => void): void {
  watch = watcher;
}

/** Passes a response to the function that `watchResponses` has set. */
export const recordResponse = (response: SeenResponse): void => watch(response);
