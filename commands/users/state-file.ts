import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { UsageError } from '../command';

const Count = z.number().int().min(0);
const State = z.strictObject({
  version: z.literal(2),
  /** Identifies the run, because a cursor is only valid for its instance. */
  run: z.string(),
  cursor: z.object({
    createdAt: z.number(),
    seen: z.array(z.object({ id: z.string(), createdAt: z.number() })).readonly(),
  }),
  figures: z.object({ seen: Count, linked: Count, alreadyLinked: Count, failed: Count }),
});

/** Progress of a backfill that did not end. Holds no secret, and of the users only ids of the last two milliseconds. */
export type State = z.infer<typeof State>;

/** Stores the state in a file that only its owner can read. The file is replaced, so it is complete at any time. */
export interface StateFile {
  read(): State | undefined;
  write(state: Omit<State, 'version' | 'run'>): void;
  remove(): void;
}

/** Throws a UsageError over a file that is of another run, or no such file at all. */
export function stateFile(path: string, run: string): StateFile {
  const temporary = `${path}.${process.pid}.tmp`;
  return {
    read() {
      if (!existsSync(path)) return undefined;
      const state = parsed(path);
      if (state === undefined)
        throw new UsageError(`${path} is no state of a backfill: name another by --state`);
      if (state.run === run) return state;
      throw new UsageError(
        `${path} is of a backfill of another instance, database or --since: finish that one, delete the file, or name another by --state`,
      );
    },
    write(state) {
      writeFileSync(temporary, `${JSON.stringify({ version: 2, run, ...state } satisfies State)}\n`, {
        flush: true,
        mode: 0o600,
      });
      renameSync(temporary, path);
    },
    remove: () => rmSync(path, { force: true }),
  };
}

function parsed(path: string): State | undefined {
  try {
    return State.safeParse(JSON.parse(readFileSync(path, 'utf8'))).data;
  } catch {
    return undefined;
  }
}
