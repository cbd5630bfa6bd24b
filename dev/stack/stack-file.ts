import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import path from 'node:path';
import { z } from 'zod';
import { errorCode } from '../system/errors';
import { listen } from '../system/listen';

/** Details of the running local stack. `npm run local` reads them from the file stack.json. */
const StackDetails = z.object({
  app: z.string(),
  databaseUrl: z.string().optional(),
  kv: z.object({ url: z.string(), token: z.string() }).optional(),
  /** Absent if the user provides an identity provider instance. */
  identityProvider: z
    .object({
      url: z.string(),
      secretKey: z.string(),
      consoleUrl: z.string().optional(),
    })
    .optional(),
  /** Environment variables that connect the application to the dependencies that the stack starts. */
  environment: z.record(z.string(), z.string()),
});

const StackFile = z.object({
  pid: z.number(),
  /**
   * The stack that wrote this file sends the nonce to each connection on this port. The `pid` cannot identify the stack,
   * because the system may reuse a process id.
   */
  port: z.number(),
  nonce: z.string(),
  details: StackDetails.optional(),
});

export type StackDetails = z.infer<typeof StackDetails>;

/** Exclusive claim of this process to a folder for local data. */
export interface FolderClaim {
  /** Writes the details to the folder, for other processes to read. */
  publish(details: StackDetails): void;
  release(): Promise<void>;
}

/**
 * Creates the folder if it does not exist and claims it for this process. The claim ends when it is released or when the
 * process ends. Rejects if another running process has claimed the folder.
 */
export async function claimFolder(folder: string): Promise<FolderClaim> {
  mkdirSync(folder, { recursive: true });
  const file = stackFile(folder);
  const nonce = randomBytes(16).toString('hex');
  const server = createServer((socket) => socket.on('error', () => {}).end(nonce));
  const port = await listen(server);
  server.unref();
  const claim = { pid: process.pid, port, nonce };
  try {
    await create(file, JSON.stringify(claim));
  } catch (error) {
    server.close();
    throw error;
  }
  return {
    publish(details) {
      const unfinished = `${file}.new`;
      writeFileSync(unfinished, `${JSON.stringify({ ...claim, details }, null, 2)}\n`, { mode: 0o600 });
      renameSync(unfinished, file);
    },
    async release() {
      rmSync(file, { force: true });
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/**
 * Returns the details of the stack that runs in the folder. Returns undefined if no stack runs or if the stack is still
 * starting.
 */
export async function findStack(folder: string): Promise<StackDetails | undefined> {
  const written = read(stackFile(folder));
  return written && (await isRunning(written)) ? written.details : undefined;
}

function stackFile(folder: string): string {
  return path.join(folder, 'stack.json');
}

/**
 * Creates the file. Rejects if it already exists and belongs to a running stack. Replaces the file of a stack that no longer
 * runs.
 */
async function create(file: string, content: string): Promise<void> {
  for (let attempt = 0; attempt < 3; attempt += 1) {
    try {
      writeFileSync(file, content, { flag: 'wx', mode: 0o600 });
      return;
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error;
    }
    const other = read(file);
    if (other && (await isRunning(other))) {
      const place = other.details ? ` at ${other.details.app}` : '';
      throw new Error(
        `The local stack of this folder is already running${place} (process ${other.pid}). Stop it first.`,
      );
    }
    rmSync(file, { force: true });
  }
  throw new Error(`Another process that starts the local stack is writing ${file}. Try again.`);
}

function read(file: string): z.infer<typeof StackFile> | undefined {
  try {
    return StackFile.safeParse(JSON.parse(readFileSync(file, 'utf8'))).data;
  } catch {
    return undefined; // the file is missing, or incomplete after a crash
  }
}

/** Returns true if the stack that wrote the file sends the nonce of the file. */
function isRunning({ port, nonce }: z.infer<typeof StackFile>): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', timeout: 5_000 });
    let received = '';
    socket.setEncoding('utf8');
    socket.on('data', (chunk) => {
      received += chunk;
      if (received.length >= nonce.length) socket.destroy();
    });
    socket.on('timeout', () => socket.destroy());
    socket.on('error', () => {});
    socket.on('close', () => resolve(received === nonce));
  });
}
