import { z } from 'zod';
import { parse } from '../http';
import { Metadata, mergeMetadata } from '../instance/metadata';

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
export function mergedMetadata(
  row: Readonly<Record<'publicMetadata' | 'privateMetadata', Metadata>> & { unsafeMetadata?: Metadata },
  body: unknown,
) {
  const change = parse(MetadataChange, body);
  return {
    publicMetadata: mergeMetadata(row.publicMetadata, change.public_metadata),
    privateMetadata: mergeMetadata(row.privateMetadata, change.private_metadata),
    ...(row.unsafeMetadata && { unsafeMetadata: mergeMetadata(row.unsafeMetadata, change.unsafe_metadata) }),
  };
}
