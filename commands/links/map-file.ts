import { createReadStream } from 'node:fs';
import { safeMessage, UsageError } from '#lib/base/errors';
import { type CheckedMap, parseMap } from '#lib/operator/relink-map';

/** Reads a CSV file with two columns of these names. Throws a UsageError if the file cannot be read. */
export async function readMapFile(path: string, names: readonly [string, string]): Promise<CheckedMap> {
  try {
    return await parseMap(createReadStream(path), names);
  } catch (error) {
    throw new UsageError(`Cannot read ${path}. ${safeMessage(error)}`);
  }
}
