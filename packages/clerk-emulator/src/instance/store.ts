import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { errorCode, messageOf } from '../errors';
import { generateSigningKeyPem } from './jwt';
import { type Data, dataSchema } from './table';

/** The data of an emulator. */
export interface Store extends Data, Omit<ReturnType<typeof announcements>, 'stop'> {
  /** Whether the store has no data of an earlier start. */
  readonly isNew: boolean;
  /** Removes all rows. */
  clear(): void;
  /** Writes the last changes to the data file and stops writing. Rejects if the file is not writable. */
  close(): Promise<void>;
}

const WRITE_DELAY_MS = 200;
/** The store spends at most this fraction of the time on writing. A large store is therefore written less often. */
const WRITE_SHARE = 0.1;

/**
 * Opens the store. Without a data file, the store exists only in memory. Each write creates a new file and renames it, so a
 * crash leaves a complete file. After a crash, the file may lack the changes of the last 0.2 s. With many thousand rows, this
 * time is longer. Rejects with an error that names the file if the file is not readable or has another format.
 */
export async function openStore(dataFile: string | undefined, newSigningKeyPem?: string): Promise<Store> {
  const { stop, ...announced } = announcements();
  const changed = () => {
    file?.changed();
    announced.announce();
  };
  const schema = dataSchema(changed);
  const saved = dataFile === undefined ? undefined : await readDataFile(dataFile, schema.parse);
  const data =
    saved ?? schema.parse({ version: 3, signingKeyPem: newSigningKeyPem ?? generateSigningKeyPem() });
  const file = dataFile === undefined ? undefined : dataFileWriter(dataFile, data);
  if (saved === undefined) changed();
  return {
    ...data,
    ...announced,
    isNew: saved === undefined,
    clear() {
      for (const table of Object.values(data)) if (typeof table === 'object') table.clear();
    },
    async close() {
      stop();
      await file?.close();
    },
  };
}

/** Tells listeners of changes. */
function announcements() {
  const listeners = new Set<() => void>();
  let isAnnouncing = false;
  return {
    /** Calls the listener after changes, at most once per event loop iteration. The returned function removes the listener. */
    onChange(listener: () => void) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    /** Calls the listeners of `onChange` after a change outside of the tables, such as a new webhook endpoint. */
    announce() {
      if (isAnnouncing) return;
      isAnnouncing = true;
      setImmediate(() => {
        isAnnouncing = false;
        for (const listener of listeners) listener();
      });
    },
    stop: () => listeners.clear(),
  };
}

/** Writes the data to the file soon after a change. `close` writes the last changes at once. */
function dataFileWriter(file: string, data: Data) {
  let timer: NodeJS.Timeout | undefined;
  let unwritten = false;
  let delay = WRITE_DELAY_MS;
  let writing = Promise.resolve();
  const write = async () => {
    if (!unwritten) return;
    unwritten = false;
    const begun = Date.now();
    await replaceFile(file, JSON.stringify(data));
    delay = Math.max(WRITE_DELAY_MS, (Date.now() - begun) / WRITE_SHARE);
  };
  const writeLater = () => {
    timer = undefined;
    writing = writing.then(write).catch((error: unknown) => {
      unwritten = true;
      console.error(`The data of the emulator was not saved: ${messageOf(error)}`);
    });
  };
  return {
    changed() {
      unwritten = true;
      timer ??= setTimeout(writeLater, delay).unref();
    },
    async close() {
      clearTimeout(timer);
      await writing;
      await write();
    },
  };
}

async function readDataFile(file: string, parse: (json: unknown) => Data): Promise<Data | undefined> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  try {
    return parse(JSON.parse(text));
  } catch (cause) {
    const message = `${file} does not contain data of this version of the emulator. Delete it to start without data.`;
    throw new Error(message, { cause });
  }
}

/** Replaces the data file. Only the owner of the file may read it, because it contains password hashes and the signing key. */
async function replaceFile(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  // A crash may leave the temporary file behind. The next write replaces the temporary file, because its name is fixed. A fixed
  // name is safe, because only one store writes the data file.
  const temporary = `${file}.tmp`;
  try {
    await writeFile(temporary, text, { mode: 0o600 });
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
