import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { copyCheckout, inTemporaryFolder, runStep } from './temporary-project';

/**
 * `npm run example`: adds the files of examples/projects to a copy of this checkout. In this copy, checks types and imports,
 * searches for unused code, and runs the tests of the example. The tests build the project. Exits with 1 if a step fails.
 */
const EXAMPLE = 'examples/projects';

/**
 * Relation fields for the Prisma model User. Prisma requires these fields because the models of the example refer to User. The
 * fields create no columns.
 */
const RELATIONS = `  projectMembers ProjectMember[]
  projectNotes   ProjectNote[]
`;

function addExample(folder: string): void {
  cpSync(EXAMPLE, folder, { recursive: true });
  const schema = path.join(folder, 'prisma/schema.prisma');
  const present = readFileSync(schema, 'utf8');
  const changed = present.replace('\n  @@map("users")', `${RELATIONS}\n  @@map("users")`);
  if (changed === present) throw new Error('prisma/schema.prisma has no model with @@map("users").');
  writeFileSync(schema, changed);
}

const TESTS = readdirSync(path.join(EXAMPLE, 'tests'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.ts'))
  .map((file) => path.join('tests', file));
const BROWSER_TESTS = TESTS.filter((file) => file.startsWith('tests/e2e/'));

const STEPS = [
  ['npx', 'prisma', 'generate'],
  ['npx', 'next', 'typegen'],
  ['npx', 'tsc', '--noEmit'],
  ['npx', 'knip'],
  ['npx', 'vitest', 'run', ...TESTS.filter((file) => !BROWSER_TESTS.includes(file))],
  ['npx', 'playwright', 'test', ...BROWSER_TESTS],
] as const;

await inTemporaryFolder('identity-link-example-', async (folder) => {
  copyCheckout(folder);
  addExample(folder);
  for (const step of STEPS) {
    if ((await runStep(step, folder)) === 0) continue;
    console.error(`Failed: ${step.join(' ')}`);
    process.exitCode = 1;
    return;
  }
});
