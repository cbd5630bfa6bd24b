import * as z from 'zod/mini';

/** Next.js may need 0.7 s to process a longer state. */
const MAX_LENGTH = 4_000;

const text = z.string();
/** A dynamic segment: its name, its value, its kind (`c` catch-all, `d` one segment, `i` intercepting) and its siblings. */
const Kind = text.check(z.regex(/^(?:oc|[cd](?:i(?:\(\.{1,3}\)|\(\.\.\)\(\.\.\)))?)$/));
const Segment = z.union([text, z.tuple([text, text, Kind, z.nullable(z.array(text))])]);
const State: z.ZodMiniType = z.tuple([
  Segment,
  z.record(
    text,
    z.lazy(() => State),
  ),
  z.nullish(z.tuple([text, text])),
  z.nullish(z.literal(['refetch', 'inside-shared-layout', 'metadata-only'])),
  z.nullish(z.number()),
  z.optional(text),
]);

/** zod ignores the key `__proto__`, and Next.js does not. */
function rejectPrototype(key: string, value: unknown): unknown {
  if (key === '__proto__') throw new SyntaxError('Not a key of the state');
  return value;
}

/**
 * Removes a malformed or long `next-router-state-tree`, in which a browser names the segments that it shows. Next.js would
 * respond with a 500. Without the header, Next.js renders the whole page.
 */
export function dropInvalidRouterState(headers: Headers): void {
  const state = headers.get('next-router-state-tree') ?? '';
  try {
    if (
      state.length <= MAX_LENGTH &&
      State.safeParse(JSON.parse(decodeURIComponent(state), rejectPrototype)).success
    )
      return;
  } catch {
    // Not JSON.
  }
  headers.delete('next-router-state-tree');
}
