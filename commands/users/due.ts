import { type ForgetDueStep, forgetDue } from '#lib/users/forget-due';
import { type ExitCode, safeMessage } from '../command';

const RETRY = { seconds: 30 };

/**
 * Maps each result of a deletion to its outcome and the reason. The command prints both for each user, and counts the outcomes.
 * `kept`: the user is not deleted. `pending`: the provider no longer has the user, and a later run repeats the deletion. If the
 * user has been linked again (has a new row in `users`), the later run deletes the new link.
 */
const OUTCOMES: Readonly<
  Record<ForgetDueStep['result'], readonly ['forgotten' | 'kept' | 'pending', reason: string]>
> = {
  forgotten: ['forgotten', ''],
  restored: ['kept', ', because the identity provider has this user again'],
  moved: ['kept', ', because users:relink has moved this user to another id'],
  referenced: ['pending', ', because a foreign key of another table refers to this user'],
  relinked: ['pending', ', because the user has been linked again'],
  uncertain: ['pending', ', because the cache does not respond'],
  failed: ['pending', ', because of an error'],
};

/**
 * Deletes ("forgets") all users whose scheduled deletion is due (docs/users.md). Prints a line for each user (the receipt), and
 * at the end the number of users with each outcome. A receipt contains the internal id or `not linked`. It does not contain the
 * provider's id, but the first digits of the hash of this id, as stored in `forgotten_users`. For `days` days after the
 * deletion, a late webhook event does not link the user again.
 */
export async function forgetDueUsers(days: number): Promise<ExitCode> {
  const figures = { forgotten: 0, kept: 0, pending: 0 };
  for await (const step of forgetDue(days, RETRY)) {
    const [outcome, reason] = OUTCOMES[step.result];
    const cause = step.result === 'failed' ? `: ${safeMessage(step.error)}` : '';
    const user = `${step.idHash} (${step.userId ?? 'not linked'})`;
    process.stdout.write(`${new Date().toISOString()} ${user} ${outcome}${reason}${cause}\n`);
    figures[outcome] += 1;
  }
  const { forgotten, kept, pending } = figures;
  process.stdout.write(
    `${forgotten + kept + pending} due, ${forgotten} forgotten, ${kept} kept, ${pending} pending\n`,
  );
  return pending === 0 ? 0 : 1;
}
