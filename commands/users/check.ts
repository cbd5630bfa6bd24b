import { parseArgs } from 'node:util';
import * as z from 'zod/mini';
import { parseEnvironmentSubset, variables } from '#lib/env';
import { reconcile } from '#lib/users/reconcile';
import { type ExitCode, runCommand, secondsOf, shown } from '../command';
import { showProgress } from '../progress';

const USAGE = `npm run users:check -- [--ids] [--retry-seconds <seconds>]

  Compares the identity provider's users with the rows of the table users, in both directions. Does not change anything.
  --ids             prints every id that is missing on one side
  --retry-seconds   retries failing requests and statements for this long (120)

  Needs IDP_SECRET_KEY and DATABASE_URL.
  Exit code: 0 no difference, 1 a difference or an error, 2 the command did not start.`;

async function main(): Promise<ExitCode> {
  const { values } = parseArgs({
    options: {
      ids: { type: 'boolean', default: false },
      'retry-seconds': { type: 'string', default: '120' },
    },
  });
  const seconds = secondsOf(values['retry-seconds'], 'retry-seconds');
  parseEnvironmentSubset(
    z.pick(variables, { IDP_SECRET_KEY: true, DATABASE_URL: true, CLERK_API_URL: true }),
  );
  const progress = showProgress('users and rows');
  const printId = (line: string) => {
    if (!values.ids) return;
    progress.end();
    process.stdout.write(`${line}\n`);
  };
  const retryOptions = {
    seconds,
    onWait: (reason: string, wait: number) => progress.say(`${reason}. Retry in ${wait} s`),
  };
  const figures = { providerUsers: 0, rows: 0, notLinked: 0, forgotten: 0, notAtProvider: 0 };
  for await (const page of reconcile(retryOptions)) {
    figures.providerUsers += page.providerUsers;
    figures.rows += page.rows;
    figures.forgotten += page.forgotten;
    figures.notLinked += page.notLinked.length;
    figures.notAtProvider += page.notAtProvider.length;
    for (const id of page.notLinked) printId(`not linked: ${shown(id)}`);
    for (const { userId, identityProviderUserId } of page.notAtProvider)
      printId(`not at the provider: ${shown(identityProviderUserId)} (${userId})`);
    progress.at(figures.providerUsers + figures.rows);
  }
  progress.end();
  const { providerUsers, rows, notLinked, forgotten, notAtProvider } = figures;
  process.stdout.write(
    `${providerUsers} users at the provider, ${notLinked} of them not linked, ${forgotten} forgotten\n${rows} rows, ${notAtProvider} of them not at the provider\n`,
  );
  return notLinked + notAtProvider === 0 ? 0 : 1;
}

await runCommand(USAGE, main);
