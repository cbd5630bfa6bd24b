import * as z from 'zod/mini';
import { text } from '../api/text';
import { withConstraintErrors } from '../storage/constraint-error';
import { database, type Transaction } from '../storage/database';
import { getProject } from './projects';

export const NoteText = z.object({ text: text('text', 1000) }, 'Expected a JSON object');

/**
 * Sets the user for the row-level security policy `own_notes`. The setting ends with the transaction, so it works with a
 * transaction pooler.
 */
const setUser = (transaction: Transaction, userId: string) =>
  transaction.$executeRaw`SELECT set_config('app.user_id', ${userId}, true)`;

/** Runs statements in a transaction. The policy `own_notes` limits the statements to the notes of this user. */
function asUser<T>(userId: string, run: (transaction: Transaction) => Promise<T>): Promise<T> {
  return database().$transaction(async (transaction) => {
    await setUser(transaction, userId);
    return run(transaction);
  });
}

/** Returns the user's note about a project, or null. */
export async function readNote(userId: string, projectId: string): Promise<string | null> {
  await getProject(userId, projectId);
  // The condition contains the user as well, because the policy does not apply to the superuser of the local stack.
  const where = { projectId_userId: { projectId, userId } };
  const note = await asUser(userId, (transaction) => transaction.projectNote.findUnique({ where }));
  return note?.text ?? null;
}

/** Stores the user's note about a project. */
export async function writeNote(userId: string, projectId: string, text: string): Promise<void> {
  await getProject(userId, projectId);
  const where = { projectId_userId: { projectId, userId } };
  const writing = asUser(userId, (transaction) =>
    transaction.projectNote.upsert({ where, create: { projectId, userId, text }, update: { text } }),
  );
  await withConstraintErrors(writing);
}

/** Deletes all notes of a user whom the identity provider has deleted. */
export async function deleteNotes(transaction: Transaction, identityProviderUserId: string): Promise<void> {
  const user = await transaction.user.findUnique({ where: { identityProviderUserId } });
  if (user === null) return;
  await setUser(transaction, user.id);
  await transaction.projectNote.deleteMany({ where: { userId: user.id } });
}
