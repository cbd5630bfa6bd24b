import { type ForgetDueStep, forgetDue } from '#lib/users/forget-due';
import { type ExitCode, safeMessage } from '../command';

const RETRY = { seconds: 30 };

/** The outcome of each result for the numbers and the receipt, and the reason. */
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
 * Forgets all users whose deletion is due. Prints a receipt for each user, and the numbers at the end. A receipt contains a
 * part of the hash in `forgotten_users` and the internal id, but not the provider's id.
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
