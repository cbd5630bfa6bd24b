/** A step of a model: what happens, and the state afterwards. */
export interface Step<S> {
  readonly label: string;
  readonly next: S;
}

/** A model whose states are JSON values. Equal states must have equal JSON. */
export interface Model<S> {
  readonly initial: S;
  /** Returns every step that is possible in a state. */
  steps(state: S): Step<S>[];
  /** Returns the guarantee that a state breaks, if there is one. */
  brokenGuarantee(state: S): string | undefined;
}

/**
 * Visits the states of a model in breadth-first order, each once, and stops at the first state that breaks a guarantee. Because
 * of the order, `trace` is a shortest sequence of steps to a broken guarantee. Without a broken guarantee, `trace` is empty.
 * Passes each state without a next step to `onEnd`.
 */
export function explore<S>(
  { initial, steps, brokenGuarantee }: Model<S>,
  onEnd: (state: S) => void = () => undefined,
): { states: number; broken: string | undefined; trace: string[] } {
  const seen = new Set([JSON.stringify(initial)]);
  let level: { state: S; trace: string[] }[] = [{ state: initial, trace: [] }];
  while (level.length > 0) {
    const following: typeof level = [];
    for (const { state, trace: before } of level) {
      const possible = steps(state);
      if (possible.length === 0) onEnd(state);
      for (const { label, next } of possible) {
        const key = JSON.stringify(next);
        if (seen.has(key)) continue;
        seen.add(key);
        const trace = [...before, label];
        const broken = brokenGuarantee(next);
        if (broken !== undefined) return { states: seen.size, broken, trace };
        following.push({ state: next, trace });
      }
    }
    level = following;
  }
  return { states: seen.size, broken: undefined, trace: [] };
}
