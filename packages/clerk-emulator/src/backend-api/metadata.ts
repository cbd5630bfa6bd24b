import { z } from 'zod';
import { parse } from '../http';

export const Metadata = z.record(z.string(), z.unknown());
type Metadata = Readonly<z.infer<typeof Metadata>>;

export const MetadataChange = z.strictObject({
  public_metadata: Metadata.nullish(),
  private_metadata: Metadata.nullish(),
  unsafe_metadata: Metadata.nullish(),
});
type MetadataChange = z.output<typeof MetadataChange>;

/** Returns the fields of a request that replace metadata. A null removes all metadata of its kind. */
export function changedMetadata({ public_metadata, private_metadata, unsafe_metadata }: MetadataChange) {
  return {
    ...(public_metadata !== undefined && { publicMetadata: public_metadata ?? {} }),
    ...(private_metadata !== undefined && { privateMetadata: private_metadata ?? {} }),
    ...(unsafe_metadata !== undefined && { unsafeMetadata: unsafe_metadata ?? {} }),
  };
}

/** Returns the metadata of a row, merged with that of a request. */
export function mergedMetadata(
  row: Readonly<Record<'publicMetadata' | 'privateMetadata', Metadata>> & { unsafeMetadata?: Metadata },
  body: unknown,
) {
  const change = parse(MetadataChange, body);
  return {
    publicMetadata: merge(row.publicMetadata, change.public_metadata),
    privateMetadata: merge(row.privateMetadata, change.private_metadata),
    ...(row.unsafeMetadata && { unsafeMetadata: merge(row.unsafeMetadata, change.unsafe_metadata) }),
  };
}

/** Merges nested objects recursively, as Clerk does. A null removes its key. */
function merge(current: Metadata, change: Metadata | null | undefined): Record<string, unknown> {
  const merged = new Map(Object.entries(current));
  for (const [key, value] of Object.entries(change ?? {})) {
    const [before, after] = [Metadata.safeParse(merged.get(key)), Metadata.safeParse(value)];
    if (value === null) merged.delete(key);
    else if (before.success && after.success) merged.set(key, merge(before.data, after.data));
    else merged.set(key, value);
  }
  return Object.fromEntries(merged);
}
