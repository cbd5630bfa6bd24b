/** Options of Stryker, a mutation testing tool. A mutant is a copy of the code with one change. Stryker runs the tests on it. */
export default {
  mutate: ['lib/**/*.ts', '!lib/generated/**'],
  testRunner: 'vitest',
  vitest: { configFile: 'tools/mutation/vitest.config.ts' },
  coverageAnalysis: 'perTest',
  // With `true`, Stryker would skip the mutants of module-level code.
  ignoreStatic: false,
  // To read a tsconfig.json, Stryker needs an API that TypeScript 7 does not have.
  tsconfigFile: 'none',
  disableTypeChecks: false,
  ignorePatterns: ['.local', '.next', '.next-test', 'bench'],
  tempDirName: '.local/mutation/sandbox',
  reporters: ['clear-text', 'progress-append-only'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false, skipFull: true },
  concurrency: 2,
  dryRunTimeoutMinutes: 10,
  timeoutMS: 10_000,
  warnings: { slow: false },
  thresholds: { high: 95, low: 90, break: 90 },
};
