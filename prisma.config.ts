import { defineConfig } from 'prisma/config';

// These three commands parse the schema without the schema engine, yet the CLI downloads that engine before it
// runs them. Naming any executable skips the download. `migrate` really needs the engine and keeps its download.
const needsNoEngine = ['generate', 'validate', 'format'].some((command) => process.argv.includes(command));
if (needsNoEngine) process.env['PRISMA_SCHEMA_ENGINE_BINARY'] ??= process.execPath;
if (process.argv.includes('migrate') && !process.env['PRISMA_SCHEMA_ENGINE_BINARY']) {
  process.stderr.write(
    'prisma migrate downloads its engine from binaries.prisma.sh. Without that host, write prisma/migrations/<time>_<name>/migration.sql ' +
      'by hand and run npm run db:deploy. Instead of `resolve`, set rolled_back_at of the row in _prisma_migrations.\n',
  );
}

// As `npm run db:deploy`: the owner of the tables, where the service has a role of less.
const url = process.env['MIGRATION_DATABASE_URL'] || process.env['DATABASE_URL'];

export default defineConfig({
  schema: 'prisma',
  migrations: { path: 'prisma/migrations' },
  ...(url ? { datasource: { url } } : {}),
});
