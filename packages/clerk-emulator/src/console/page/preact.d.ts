/** What the page uses of htm/preact/standalone, which the console's server serves under this name. */
export function html(strings: TemplateStringsArray, ...values: readonly unknown[]): unknown;
/** Draws into an element; from the second time on only what differs. */
export function render(view: unknown, place: Element): void;
export function useState<State>(initial: State): [State, (next: State) => void];
export function useRef<Target>(initial: Target): { current: Target };
export function useMemo<Value>(make: () => Value, inputs: readonly unknown[]): Value;
export function useLayoutEffect(effect: () => undefined | (() => void), inputs: readonly unknown[]): void;
