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

/** The fields of a request that change metadata. */
export const MetadataChange = z.strictObject({
  public_metadata: Metadata.nullish(),
  private_metadata: Metadata.nullish(),
  unsafe_metadata: Metadata.nullish(),
});
type MetadataChange = z.output<typeof MetadataChange>;
/** The metadata of rows other than users. */
export const OwnMetadata = MetadataChange.omit({ unsafe_metadata: true });

/** Returns the fields of a request that replace metadata. A null removes all metadata of its kind. */
export function changedMetadata({ public_metadata, private_metadata, unsafe_metadata }: MetadataChange) {
  return {
    ...(public_metadata !== undefined && { publicMetadata: public_metadata ?? {} }),
    ...(private_metadata !== undefined && { privateMetadata: private_metadata ?? {} }),
    ...(unsafe_metadata !== undefined && { unsafeMetadata: unsafe_metadata ?? {} }),
  };
}

/** Returns the metadata of a row, merged with that of a request. */
export const mergedMetadata = (
  row: Readonly<Record<'publicMetadata' | 'privateMetadata', Metadata>> & { unsafeMetadata?: Metadata },
  change: MetadataChange,
) => ({
  publicMetadata: mergeMetadata(row.publicMetadata, change.public_metadata),
  privateMetadata: mergeMetadata(row.privateMetadata, change.private_metadata),
  ...(row.unsafeMetadata && { unsafeMetadata: mergeMetadata(row.unsafeMetadata, change.unsafe_metadata) }),
});
