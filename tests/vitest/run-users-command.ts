import { vi } from 'vitest';
import { variables } from '#lib/base/env';
import { forgetModules } from './forget-modules';

/**
 * Runs `npm run users` in this process, which is faster than in a new process. Returns its output and exit code. Only one
 * command may run at a time, because it uses the arguments, the environment and the output streams of this process. Tests of
 * process behaviour, such as signals, use `runCommand` of the harness.
 */
export async function runUsersCommand(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
) {
  const { argv } = process;
  const written = { stdout: '', stderr: '' };
  for (const name of Object.keys(variables.shape)) vi.stubEnv(name, environment[name] ?? '');
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
    const { createUsersProgram } = await import('../../commands/users/program');
    await runProgram(createUsersProgram());
    await (await import('#lib/storage/database')).closeDatabase();
    return { exit: process.exitCode, ...written };
  } finally {
    process.argv = argv;
    process.exitCode = undefined;
    for (const spy of spies) spy.mockRestore();
    vi.unstubAllEnvs();
  }
}
