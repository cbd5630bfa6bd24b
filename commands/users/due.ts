import { type ForgetDueStep, forgetDue } from '#lib/users/forget-due';
import { type ExitCode, inWords } from '../command';

const RETRY = { seconds: 30 };

const RESULTS: Readonly<Record<ForgetDueStep['result'], string>> = {
  forgotten: 'forgotten',
  restored: 'not deleted, because the identity provider has this user again',
  referenced: 'pending, because a foreign key of another table refers to this user',
  relinked: 'pending, because the user has been linked again',
  uncertain: 'pending, because the cache does not respond',
  failed: 'pending, because of an error',
};

/** Returns the receipt of a result. It contains the hash and the internal id, but not the provider's id. */
function receiptOf(step: ForgetDueStep): string {
  const cause = step.result === 'failed' ? `: ${inWords(step.error)}` : '';
  const user = `${step.idHash} (${step.userId ?? 'not linked'})`;
  return `${new Date().toISOString()} ${user} ${RESULTS[step.result]}${cause}`;
}

/** Forgets all users whose deletion is due. Prints a receipt for each user, and the numbers at the end. */
export async function forgetDueUsers(days: number): Promise<ExitCode> {
  const figures = { due: 0, forgotten: 0, restored: 0, pending: 0 };
  for await (const step of forgetDue(days, RETRY)) {
    process.stdout.write(`${receiptOf(step)}\n`);
    figures.due += 1;
    figures[step.result === 'forgotten' || step.result === 'restored' ? step.result : 'pending'] += 1;
  }
  const { due, forgotten, restored, pending } = figures;
  process.stdout.write(
    `${due} due, ${forgotten} forgotten, ${restored} restored at the provider, ${pending} still pending\n`,
  );
  return pending === 0 ? 0 : 1;
}
