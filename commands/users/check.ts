import { parseArgs } from 'node:util';
import * as z from 'zod/mini';
import { parseEnvironmentSubset, variables } from '#lib/env';
import { compare } from '#lib/users/reconcile';
import { type ExitCode, runCommand, secondsOf, shown } from '../command';
import { showProgress } from '../progress';

const USAGE = `npm run users:check -- [--ids] [--patience <seconds>]

  Compares the identity provider's users with the rows, in both directions. Changes nothing.
  --ids        tells every id that is on one side only, a line each
  --patience   how long provider or database may fail in a row (120)

  Needs IDP_SECRET_KEY and DATABASE_URL. Exit code: 0 no difference, 1 a difference or it ended early, 2 it did not begin.`;

async function main(): Promise<ExitCode> {
  const { values } = parseArgs({
    options: { ids: { type: 'boolean', default: false }, patience: { type: 'string', default: '120' } },
  });
  const seconds = secondsOf(values.patience, 'patience');
  parseEnvironmentSubset(
    z.pick(variables, { IDP_SECRET_KEY: true, DATABASE_URL: true, CLERK_API_URL: true }),
  );
  const progress = showProgress();
  const tell = (line: string) => {
    if (!values.ids) return;
    progress.end();
    process.stdout.write(`${line}\n`);
  };
  const patience = {
    seconds,
    onWait: (why: string, wait: number) => progress.say(`${why}; again in ${wait} s`),
  };
  const figures = { providerUsers: 0, rows: 0, notLinked: 0, notAtProvider: 0 };
  for await (const page of compare(patience)) {
    figures.providerUsers += page.providerUsers;
    figures.rows += page.rows;
    figures.notLinked += page.notLinked.length;
    figures.notAtProvider += page.notAtProvider.length;
    for (const id of page.notLinked) tell(`not linked: ${shown(id)}`);
    for (const { userId, identityProviderUserId } of page.notAtProvider)
      tell(`not at the provider: ${shown(identityProviderUserId)} (${userId})`);
    progress.at(figures.providerUsers + figures.rows);
  }
  progress.end();
  const { providerUsers, rows, notLinked, notAtProvider } = figures;
  process.stdout.write(
    `${providerUsers} users at the provider, ${notLinked} of them not linked\n${rows} rows, ${notAtProvider} of them of nobody at the provider\n`,
  );
  return notLinked + notAtProvider === 0 ? 0 : 1;
}

await runCommand(USAGE, main);
