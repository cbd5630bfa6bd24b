import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import path from 'node:path';
import { z } from 'zod';
import { errorCode } from '../system/errors';
import { listen } from '../system/listen';

/** What `npm run local` needs to know of the stack that runs. */
const StackDetails = z.object({
  app: z.string(),
  databaseUrl: z.string().optional(),
  kv: z.object({ url: z.string(), token: z.string() }).optional(),
  /** Absent: an instance of the user's own. */
  identityProvider: z
    .object({
      url: z.string(),
      secretKey: z.string(),
      consoleUrl: z.string().optional(),
    })
    .optional(),
  /** What the application has in its environment for the parts that are not the user's own. */
  environment: z.record(z.string(), z.string()),
});

const StackFile = z.object({
  pid: z.number(),
  /** Whoever listens here and says the word is the stack that wrote this file: an id may be reused, a word not. */
  port: z.number(),
  word: z.string(),
  details: StackDetails.optional(),
});

export type StackDetails = z.infer<typeof StackDetails>;

/** A local folder that belongs to this process. */
export interface FolderClaim {
  /** Lets other processes read where everything is. */
  publish(details: StackDetails): void;
  release(): Promise<void>;
}

/**
 * Makes the folder if need be and reserves it for this process, until the release or the end of this process.
 * Rejects when another live process has it.
 */
export async function claimFolder(folder: string): Promise<FolderClaim> {
  mkdirSync(folder, { recursive: true });
  const file = stackFile(folder);
  const word = randomBytes(16).toString('hex');
  const server = createServer((socket) => socket.on('error', () => {}).end(word));
  const port = await listen(server);
  server.unref();
  const own = { pid: process.pid, port, word };
  try {
    await create(file, JSON.stringify(own));
  } catch (error) {
    server.close();
    throw error;
  }
  return {
    publish(details) {
      const unfinished = `${file}.new`;
      writeFileSync(unfinished, `${JSON.stringify({ ...own, details }, null, 2)}\n`, { mode: 0o600 });
      renameSync(unfinished, file);
    },
    async release() {
      rmSync(file, { force: true });
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The stack that runs in the folder and is up; undefined: none. */
export async function findStack(folder: string): Promise<StackDetails | undefined> {
  const written = read(stackFile(folder));
  return written && (await isThere(written)) ? written.details : undefined;
}

function stackFile(folder: string): string {
  return path.join(folder, 'stack.json');
}

async function create(file: string, content: string): Promise<void> {
  for (let attempt = 0; attempt < 3; attempt += 1) {
    try {
      writeFileSync(file, content, { flag: 'wx', mode: 0o600 });
      return;
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error;
    }
    const other = read(file);
    if (other && (await isThere(other))) {
      const place = other.details ? ` at ${other.details.app}` : '';
      throw new Error(
        `The local stack of this folder already runs${place} (process ${other.pid}). Stop that one first.`,
      );
    }
    rmSync(file, { force: true });
  }
  throw new Error(`${file} is being written by another start of the local stack; try again.`);
}

function read(file: string): z.infer<typeof StackFile> | undefined {
  try {
    return StackFile.safeParse(JSON.parse(readFileSync(file, 'utf8'))).data;
  } catch {
    return undefined; // none, or one that a crash left half written
  }
}

function isThere({ port, word }: z.infer<typeof StackFile>): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', timeout: 5_000 });
    let heard = '';
    socket.setEncoding('utf8');
    socket.on('data', (chunk) => {
      heard += chunk;
      if (heard.length >= word.length) socket.destroy();
    });
    socket.on('timeout', () => socket.destroy());
    socket.on('error', () => {});
    socket.on('close', () => resolve(heard === word));
  });
}
