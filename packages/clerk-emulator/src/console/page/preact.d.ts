// The functions of htm/preact/standalone that the page uses. The console's server serves that module as `preact.js`.

/** Creates a view from a template. */
export function html(strings: TemplateStringsArray, ...values: readonly unknown[]): unknown;
/** Renders a view into an element. A later call updates only what has changed. */
export function render(view: unknown, place: Element): void;
export function useState<State>(initial: State): [State, (next: State) => void];
