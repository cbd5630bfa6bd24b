/**
 * Options of Stryker, the mutation testing tool. `npm run mutation` passes the files and lines to mutate as arguments. Paths
 * are relative to the folder of the project.
 */
const run = process.env.MUTATION_RUN;

export default {
  testRunner: 'vitest',
  plugins: ['@stryker-mutator/vitest-runner'],
  vitest: { configFile: 'tools/mutation/vitest.config.ts', pool: 'forks' },
  coverageAnalysis: 'perTest',
  // With `false`, Stryker also tests mutants (copies of the code with one change) of module-level code. With `true`, Stryker
  // would skip these mutants.
  ignoreStatic: false,
  // To read a tsconfig.json, Stryker needs an API that TypeScript 7 does not have.
  tsconfigFile: 'none',
  disableTypeChecks: false,
  ignorePatterns: ['.local', '.next', '.next-test', '.vercel', 'bench/baselines', 'coverage'],
  tempDirName: `.local/mutation/${run}/sandbox`,
  incremental: true,
  incrementalFile: `.local/mutation/${run}/incremental.json`,
  reporters: ['json', 'progress-append-only'],
  jsonReporter: { fileName: `.local/mutation/${run}/report.json` },
  concurrency: 2,
  dryRunTimeoutMinutes: 10,
  timeoutMS: 10_000,
  timeoutFactor: 4,
  warnings: { slow: false },
  // With `break: null`, Stryker succeeds even if mutants survive. tools/mutation/main.ts sets the exit code instead.
  // `high` and `low` only affect the colors of reports.
  thresholds: { high: 95, low: 90, break: null },
  allowEmpty: true,
};
