import { vi } from 'vitest';
import { variables } from '#lib/env';

/**
 * Runs an operator's command in this process, which spares the start of one: for what it says and the code it ends with.
 * What is a process's own, such as that it ends at all, is for `runCommand` of the harness. `load` imports the command,
 * which is what runs it. One at a time.
 */
export async function runCommandHere(
  load: () => Promise<unknown>,
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
    // A process has clients of its own.
    vi.resetModules();
    await load();
    return { exit: process.exitCode, ...written };
  } finally {
    process.argv = argv;
    process.exitCode = undefined;
    for (const spy of spies) spy.mockRestore();
    vi.unstubAllEnvs();
  }
}
