import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import {
  combine,
  dropUnreliableResults,
  type Result,
  readReport,
  scoreTable,
  staleEntries,
  storeResults,
} from './report';
import { changedLines, git, isInScope, patternOf, type Scope } from './scope';

// `npm run mutation [-- <file or folder>... | --since <commit>] [--force]`: runs Stryker on lib/. A mutant is the code with a
// change in one place. The tests catch a mutant if a unit test or an in-process test fails. In-process tests call lib/ with a
// real PostgreSQL, and run only for mutants that the unit tests do not catch. equivalent.ts lists the mutants that no test can
// catch. Any other mutant that the tests do not catch survives. Exits with 1 if a mutant survives.
//
// `--since` tests only the mutants in lines that differ from a commit. Without `--since`, the command updates docs/testing.md.
// Reuses the results of unchanged code and tests unless `--force` is set.

const FOLDER = import.meta.dirname;
const PAGE = 'docs/testing.md';
/** File with the last results of each source file. */
const RESULTS = '.local/mutation/results.json';
/** Generated files, and files that contain only types. */
const EXCLUDED = ['!lib/generated/**', '!lib/**/*.d.ts', '!lib/routing/routes.ts'];

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 18))
  fail('Stryker needs Node.js 22.18 or later. Use the version in .nvmrc.');

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { since: { type: 'string' }, force: { type: 'boolean', default: false } },
});

/** Installs Stryker. A separate lock file lists its 177 packages, so that `npm ci` of the project does not install them. */
function install(): void {
  const [wanted, installed] = ['package-lock.json', 'node_modules/.package-lock.json'].map((file) =>
    statSync(path.join(FOLDER, file), { throwIfNoEntry: false }),
  );
  if ((installed?.mtimeMs ?? 0) >= (wanted?.mtimeMs ?? 0)) return;
  // Stryker must use the Vitest of the project. `--legacy-peer-deps` prevents npm from installing a second Vitest as a
  // peer dependency of Stryker.
  execFileSync('npm', ['ci', '--legacy-peer-deps', '--no-audit', '--no-fund'], {
    cwd: FOLDER,
    stdio: 'inherit',
  });
}

const chosen = (positionals.length === 0 ? ['lib'] : positionals).map((name) => ({
  path: path.normalize(name).replace(/\/$/, ''),
}));
const scopes: Scope[] = values.since === undefined ? chosen : changedLines(values.since);
if (scopes.length === 0) {
  process.stdout.write(`No line of lib/ differs from ${values.since}.\n`);
  process.exit(0);
}
const section = /(<!-- npm run mutation -->\n)[\s\S]*?(<!-- end -->)/;
if (!section.test(readFileSync(PAGE, 'utf8')))
  fail(`${PAGE} has no section between <!-- npm run mutation --> and <!-- end -->.`);

/** Runs Stryker with the unit tests or the in-process tests. Returns the results of the mutants in `scopes`. */
function run(tests: 'unit' | 'in-process', patterns: readonly string[]): Result[] {
  const report = `.local/mutation/${tests}/report.json`;
  rmSync(report, { force: true });
  dropUnreliableResults(`.local/mutation/${tests}/incremental.json`);
  const stryker = path.join(FOLDER, 'node_modules/@stryker-mutator/core/bin/stryker.js');
  const options = ['run', path.join(FOLDER, 'stryker.config.mjs'), '--mutate', patterns.join(',')];
  const { status } = spawnSync(
    process.execPath,
    [stryker, ...options, ...(values.force ? ['--force'] : [])],
    {
      env: { ...process.env, MUTATION_RUN: tests },
      stdio: 'inherit',
    },
  );
  // Stryker writes no report if no test imports the mutated files. Unit tests must import them, but in-process tests need not.
  if (status === 0 && tests === 'in-process' && !existsSync(report)) return [];
  if (status !== 0 || !existsSync(report)) fail('Stryker failed.');
  // The report also contains results of other files, which Stryker reuses from earlier runs.
  return readReport(report).filter((result) => isInScope(result, scopes));
}

install();
const byUnitTests = run('unit', [...scopes.map(patternOf), ...EXCLUDED]);
const ranges = byUnitTests.filter(({ outcome }) => outcome === 'survived').map(({ range }) => range);
const results = ranges.length === 0 ? byUnitTests : combine(byUnitTests, run('in-process', ranges));
const survivors = results.filter(({ outcome }) => outcome === 'survived');
process.stdout.write(survivors.map(({ file, line, text }) => `${file}:${line} ${text}\n`).join(''));
process.stdout.write(`\n${scoreTable(results)}\n`);
if (values.since === undefined) {
  const all = storeResults(RESULTS, results);
  for (const { file, mutant } of staleEntries(all))
    process.stderr.write(
      `equivalent.ts lists a mutant that a test now catches or that no longer exists: ${file}: ${mutant}\n`,
    );
  const commit = git('describe', '--always', '--dirty').trim();
  const date = new Date().toISOString().slice(0, 10);
  const text = `Results, updated at ${commit}, ${date}:\n\n${scoreTable(all)}`;
  const page = readFileSync(PAGE, 'utf8');
  writeFileSync(
    PAGE,
    page.replace(section, (_all, start: string, end: string) => `${start}${text}\n${end}`),
  );
}
process.exitCode = survivors.length === 0 ? 0 : 1;
