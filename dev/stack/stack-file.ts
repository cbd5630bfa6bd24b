import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { errorCode } from '#lib/base/errors';
import { isAlive } from '../system/processes';

/** Details of the running local stack. `npm run local` reads them from the file stack.json. */
const StackDetails = z.object({
  app: z.string(),
  /** Environment variables that connect the application to the dependencies that the stack has started. */
  environment: z.record(z.string(), z.string()),
});
const StackFile = z.object({ pid: z.number(), details: StackDetails.optional() });

export type StackDetails = z.infer<typeof StackDetails>;

/** Creates and claims the folder until the release or the end of this process. Throws if another process has claimed it. */
export function claimFolder(folder: string) {
  mkdirSync(folder, { recursive: true });
  const file = stackFile(folder);
  const other = readRunning(file);
  if (other) {
    throw new Error(
      `The local stack of this folder is already running${other.details ? ` at ${other.details.app}` : ''} ` +
        `(process ${other.pid}). Stop it first. If process ${other.pid} is another program, delete ${file}.`,
    );
  }
  rmSync(file, { force: true });
  const write = (flag: 'w' | 'wx', details?: StackDetails) =>
    writeFileSync(file, `${JSON.stringify({ pid: process.pid, details }, null, 2)}\n`, { flag, mode: 0o600 });
  try {
    write('wx');
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
    throw new Error(`Another process has just started the local stack of ${folder}.`, { cause: error });
  }
  return {
    /** Writes the details to the folder, for other processes to read. */
    publish: (details: StackDetails) => write('w', details),
    release: () => rmSync(file, { force: true }),
  };
}

/** Returns the details of the stack that runs in the folder, or undefined if no stack runs or if it is still starting. */
export function findStack(folder: string): StackDetails | undefined {
  return readRunning(stackFile(folder))?.details;
}

const stackFile = (folder: string) => path.join(folder, 'stack.json');

/** Returns the content of the file if the process that wrote it runs. */
function readRunning(file: string): z.infer<typeof StackFile> | undefined {
  try {
    const content = StackFile.parse(JSON.parse(readFileSync(file, 'utf8')));
    return isAlive(content.pid) ? content : undefined;
  } catch {
    return undefined; // the file is missing, or incomplete after a crash
  }
}
