import { z } from 'zod';

export const Metadata = z.record(z.string(), z.unknown());
export type Metadata = Readonly<z.infer<typeof Metadata>>;

/** Merges nested objects recursively, as Clerk does. A null removes its key. */
export function mergeMetadata(
  current: Metadata,
  change: Metadata | null | undefined,
): Record<string, unknown> {
  const merged = new Map(Object.entries(current));
  for (const [key, value] of Object.entries(change ?? {})) {
    const [before, after] = [Metadata.safeParse(merged.get(key)), Metadata.safeParse(value)];
    if (value === null) merged.delete(key);
    else if (before.success && after.success) merged.set(key, mergeMetadata(before.data, after.data));
    else merged.set(key, value);
  }
  return Object.fromEntries(merged);
}
