import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { UsageError } from '../command';

const Count = z.number().int().min(0);
const State = z.strictObject({
  version: z.literal(1),
  /** Tells which run it is of: what is a place in one instance is none in another. */
  run: z.string(),
  place: z.object({ createdAt: z.number(), id: z.string(), count: Count }),
  figures: z.object({ seen: Count, linked: Count, alreadyLinked: Count, failed: Count }),
});

/** How far a backfill that did not end has come. It holds no secret, and of users one id. */
export type State = z.infer<typeof State>;

/** Where a run is kept, whole at any moment: the file is replaced, never written over. */
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
      writeFileSync(temporary, `${JSON.stringify({ version: 1, run, ...state } satisfies State)}\n`, {
        flush: true,
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
