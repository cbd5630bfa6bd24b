import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { UsageError } from '../command';

const Count = z.number().int().min(0);
const State = z.strictObject({
  version: z.literal(3),
  /**
   * Hash of three values: the identity provider's secret key, the address of the database and the option `--since`. A cursor is
   * valid only for a backfill with the same values.
   */
  run: z.string(),
  /** Position in the provider's list of users (lib/users/paginate.ts). */
  cursor: z.object({
    createdAt: z.number(),
    seen: z.array(z.object({ id: z.string(), createdAt: z.number() })).readonly(),
  }),
  figures: z.object({ seen: Count, linked: Count, alreadyLinked: Count, forgotten: Count, failed: Count }),
});

/**
 * Progress of an interrupted backfill (`npm run users:backfill`, which gives each user of the identity provider an internal
 * id). Contains the ids and creation times of the users that were read last, but no secrets.
 */
export type State = z.infer<typeof State>;

/** A state file that only its owner can read. Each write replaces the file atomically, so the file is always complete. */
export interface StateFile {
  read(): State | undefined;
  write(state: Omit<State, 'version' | 'run'>): void;
  remove(): void;
}

/**
 * Returns the state file at a path. `read` returns undefined if there is no file. It throws a UsageError if the file is not a
 * state file or if its `run` differs from the given one.
 */
export function stateFile(path: string, run: string): StateFile {
  const temporary = `${path}.${process.pid}.tmp`;
  return {
    read() {
      if (!existsSync(path)) return undefined;
      const state = parse(path);
      if (state === undefined)
        throw new UsageError(`${path} is not the state of a backfill. Pass another file with --state.`);
      if (state.run === run) return state;
      throw new UsageError(
        `${path} belongs to a backfill with another IDP_SECRET_KEY, database or --since. Finish that backfill, delete the file, or pass another file with --state.`,
      );
    },
    write(state) {
      writeFileSync(temporary, `${JSON.stringify({ version: 3, run, ...state } satisfies State)}\n`, {
        flush: true,
        mode: 0o600,
      });
      renameSync(temporary, path);
    },
    remove: () => rmSync(path, { force: true }),
  };
}

function parse(path: string): State | undefined {
  try {
    return State.safeParse(JSON.parse(readFileSync(path, 'utf8'))).data;
  } catch {
    return undefined;
  }
}
