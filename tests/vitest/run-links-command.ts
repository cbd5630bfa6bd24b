import { vi } from 'vitest';
import type { Kind } from '#lib/core/ports';
import { BUILD_TIME_VALUES } from '../harness/build';
import { startProvider } from '../harness/identity-provider';
import { startInProcess } from '../harness/in-process';
import { SECRET_KEY, VARIABLE_NAMES } from '../harness/keys';
import { forgetModules } from './forget-modules';
import { stopAfterAll } from './stop-after-all';

/**
 * Runs `npm run users` or `npm run tenants` in this process, which is faster than in a new process. Returns its output and exit
 * code. Only one command may run at a time, because it uses the arguments, the environment and the output streams of this
 * process. Tests of process behaviour, such as signals, use `runCommand` of the harness.
 */
export async function runLinksCommand(
  kind: Kind,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
) {
  const { argv } = process;
  const written = { stdout: '', stderr: '' };
  for (const name of VARIABLE_NAMES) vi.stubEnv(name, environment[name] ?? '');
  const spies = (['stdout', 'stderr'] as const).map((stream) =>
    vi.spyOn(process[stream], 'write').mockImplementation((chunk) => {
      written[stream] += chunk;
      return true;
    }),
  );
  process.argv = [...argv.slice(0, 2), ...args];
  try {
    // As in a new process, the command gets its own database and cache clients.
    forgetModules();
    const { runProgram } = await import('../../commands/command');
    const { createLinksProgram } = await import('../../commands/links/program');
    await runProgram(createLinksProgram(kind));
    await (await import('#lib/storage/database')).closeDatabase();
    return { exit: process.exitCode, ...written };
  } finally {
    process.argv = argv;
    process.exitCode = undefined;
    for (const spy of spies) spy.mockRestore();
    vi.unstubAllEnvs();
  }
}

/**
 * Starts a database, a KV server and an identity provider for a test file. `run` runs a command such as `npm run users -- show`
 * with them.
 */
export async function startLinksCommand() {
  const { database, kv } = await startInProcess();
  const provider = stopAfterAll(await startProvider());
  const environment = {
    ...BUILD_TIME_VALUES,
    IDP_SECRET_KEY: SECRET_KEY,
    DATABASE_URL: database.url,
    CLERK_API_URL: provider.url,
    ...kv.environment,
  };
  const run = (kind: Kind, ...args: string[]) => runLinksCommand(kind, args, environment);
  return { database, kv, provider, environment, run };
}
