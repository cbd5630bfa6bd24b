import * as z from 'zod/mini';
import { text } from '../api/text';
import { withConstraintErrors } from '../storage/constraint-error';
import { asCaller, type Caller } from './caller';
import { findProject } from './projects';

export const NoteText = z.object({ text: text('text', 1000) }, 'Expected a JSON object');

/** Returns the caller's note about a project, or null. */
export function readNote(caller: Caller, projectId: string): Promise<string | null> {
  return asCaller(caller, async (transaction) => {
    await findProject(transaction, caller, projectId);
    // The condition contains the user as well, because no policy applies to the superuser of the local stack.
    const where = { projectId_userId: { projectId, userId: caller.userId } };
    return (await transaction.projectNote.findUnique({ where }))?.text ?? null;
  });
}

/** Stores the caller's note about a project. */
export async function writeNote(caller: Caller, projectId: string, text: string): Promise<void> {
  const key = { projectId, userId: caller.userId };
  const writing = asCaller(caller, async (transaction) => {
    await findProject(transaction, caller, projectId);
    const where = { projectId_userId: key };
    return transaction.projectNote.upsert({ where, create: { ...key, text }, update: { text } });
  });
  await withConstraintErrors(writing);
}
