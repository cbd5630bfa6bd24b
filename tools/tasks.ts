import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { buildIfChanged } from '../tests/harness/build';

/*
 * `npm test` and `npm run check`. A name after `--` runs one step: `npm run check -- types`. Runs the rows of a task at the same
 * time, and the steps of a row one after another.
 */

interface Step {
  readonly name: string;
  readonly command: string | (() => Promise<string>);
  /** The step leaves the processor to the others, because it does not decide how long the task takes. */
  readonly isNice?: boolean;
}

/** Writes the OpenAPI document to a file, because the linter reads no module. */
async function lintDocument(): Promise<string> {
  const { openApiDocument } = await import('#lib/api/document');
  mkdirSync('.local', { recursive: true });
  writeFileSync('.local/openapi.json', JSON.stringify(openApiDocument));
  return 'redocly lint .local/openapi.json --extends recommended-strict --skip-rule operation-4xx-response';
}

let built: Promise<void> | undefined;
/** Builds the service once for the two steps that need it, because they run at the same time. */
const withBuild = (command: string) => async () => {
  built ??= buildIfChanged();
  await built;
  return command;
};

const SOURCES =
  'app lib events providers commands dev packages tests bench tools middleware.ts instrumentation.ts server.ts next.config.ts';

const TASKS: Readonly<Record<string, readonly (readonly Step[])[]>> = {
  test: [
    [{ name: 'units', command: 'vitest run --project unit --project in-process', isNice: true }],
    [{ name: 'service', command: withBuild('vitest run --project service') }],
    [{ name: 'browser', command: withBuild('playwright test sign-up --project test-keys') }],
  ],
  check: [
    [
      { name: 'style', command: 'biome check --error-on-warnings' },
      { name: 'routes', command: 'next typegen' },
      { name: 'types', command: 'tsc --noEmit' },
      { name: 'packages', command: 'npm run build --workspaces' },
      { name: 'unused', command: 'knip --treat-config-hints-as-errors' },
      { name: 'layers', command: `depcruise ${SOURCES}` },
      { name: 'document', command: lintDocument },
      {
        name: 'workflows',
        command: 'for file in .github/workflows/*.yml; do action-validator $file || exit; done',
      },
    ],
  ],
};

const [task = '', ...only] = process.argv.slice(2);
const steps = (TASKS[task] ?? []).map((row) =>
  row.filter(({ name }) => only.length === 0 || only.includes(name)),
);
if (steps.flat().length < Math.max(only.length, 1)) {
  const names = (TASKS[task] ?? []).flat().map(({ name }) => name);
  process.stderr.write(`Unknown step: ${only.join(' ')}. The steps are: ${names.join(', ')}\n`);
  process.exit(2);
}

async function run({ command, isNice = false }: Step): Promise<boolean> {
  const line = typeof command === 'string' ? command : await command();
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  const child = spawn(line, { shell: true, stdio: 'inherit', env });
  if (isNice && child.pid) os.setPriority(child.pid, 10);
  const stop = (signal: NodeJS.Signals) => child.kill(signal);
  process.on('SIGINT', stop).on('SIGTERM', stop);
  const code = await new Promise((resolve) => child.once('close', resolve));
  process.off('SIGINT', stop).off('SIGTERM', stop);
  return code === 0;
}

async function runRow(row: readonly Step[]): Promise<readonly string[]> {
  for (const step of row) if (!(await run(step))) return [step.name];
  return [];
}

const startedAt = performance.now();
// The steps of `npm test` share one PostgreSQL server, whose address they get by the environment.
const stopDatabase =
  task === 'test' ? await (await import('../tests/vitest/start-database')).default() : undefined;
const failed = (await Promise.all(steps.map(runRow))).flat();
await stopDatabase?.();
const seconds = Math.round((performance.now() - startedAt) / 1000);
process.stdout.write(
  failed.length ? `\nFailed: ${failed.join(', ')}\n` : `\n${task} passed in ${seconds} s\n`,
);
process.exit(failed.length ? 1 : 0);
