import { type ForgetDueStep, forgetDue } from '#lib/users/forget-due';
import { type ExitCode, safeMessage } from '../command';

const RETRY = { seconds: 30 };

/**
 * Maps each result to its outcome and the reason. The command counts the outcomes, and prints the outcome and the reason in the
 * receipt. `kept`: the user is not deleted. `pending`: the provider no longer has the user, and a later run repeats the
 * deletion. If the user has been linked again, the later run deletes the new link.
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
 * Deletes ("forgets") all users whose pending deletion is due (docs/users.md). Prints a receipt for each user, and at the end
 * the number of users with each outcome. A receipt contains the first digits of the hash of the provider's id, as stored in
 * `forgotten_users`, and the internal id or `not linked`. It does not contain the provider's id. For `days` days after the
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
