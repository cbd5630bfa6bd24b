/** An answer of a server, beside what was asked. */
export interface SeenAnswer {
  readonly method: string;
  /** As it was sent, without the query; undefined where it is not certain which request is answered. */
  readonly pathname: string | undefined;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

let watch: (answer: SeenAnswer) => void = () => undefined;

/** Has every answer seen that comes to this process from now on: each way to send a request tells of its answers here. */
export function watchAnswers(watcher: (answer: SeenAnswer) => void): void {
  watch = watcher;
}

/** Tells whoever watches. */
export const recordResponse = (answer: SeenAnswer): void => watch(answer);
