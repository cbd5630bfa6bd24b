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

/** Result of an exploration. `trace` is a shortest sequence of steps to the broken guarantee. */
export interface Exploration {
  readonly states: number;
  readonly seconds: number;
  readonly broken?: { readonly guarantee: string; readonly trace: readonly string[] };
}

/** The step that first reached a state. `from` is the arrival at the previous state. */
interface Arrival {
  readonly from: Arrival | undefined;
  readonly label: string;
}

function traceTo(arrival: Arrival | undefined): string[] {
  const labels: string[] = [];
  for (let at = arrival; at !== undefined; at = at.from) labels.unshift(at.label);
  return labels;
}

/**
 * Visits the states of a model in breadth-first order, each once. Checks the guarantees in every state except the initial state.
 * Stops at the first state that breaks a guarantee. Because of the order, no shorter trace leads to such a state.
 */
export function explore<S>({ initial, steps, brokenGuarantee }: Model<S>): Exploration {
  const startedAt = performance.now();
  const seen = new Set([JSON.stringify(initial)]);
  let level: { state: S; arrival: Arrival | undefined }[] = [{ state: initial, arrival: undefined }];
  const result = () => ({ states: seen.size, seconds: (performance.now() - startedAt) / 1000 });
  while (level.length > 0) {
    const following: typeof level = [];
    for (const { state, arrival: from } of level) {
      for (const { label, next } of steps(state)) {
        const key = JSON.stringify(next);
        if (seen.has(key)) continue;
        seen.add(key);
        const arrival = { from, label };
        const guarantee = brokenGuarantee(next);
        if (guarantee !== undefined) return { ...result(), broken: { guarantee, trace: traceTo(arrival) } };
        following.push({ state: next, arrival });
      }
    }
    level = following;
  }
  return result();
}
