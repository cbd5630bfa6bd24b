import { hostname, userInfo } from 'node:os';
import { type Command, InvalidArgumentError } from 'commander';

/** Returns the account of the system that runs the command, and its host. An account in a container can have no name. */
function account(): string {
  let name = `uid ${process.getuid?.()}`;
  try {
    name = userInfo().username;
  } catch {}
  return `${name}@${hostname()}`;
}

function parseText(text: string): string {
  if (/^\P{Cc}{1,200}$/u.test(text)) return text;
  throw new InvalidArgumentError('Pass 1 to 200 characters without control characters.');
}

/** Adds the options that the table `link_changes` stores with a change. */
export const withChange = (command: Command): Command =>
  command
    .option('--by <name>', 'the operator, for the history', parseText, account())
    .option('--reason <text>', 'the reason, for the history. Name no user', parseText);
