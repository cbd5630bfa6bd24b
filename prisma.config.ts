import { defineConfig } from 'prisma/config';

// These three commands parse the schema without the schema engine, yet the CLI downloads that engine before it
// runs them. Naming any executable skips the download. `migrate` really needs the engine and keeps its download.
const needsNoEngine = ['generate', 'validate', 'format'].some((command) => process.argv.includes(command));
if (needsNoEngine) process.env['PRISMA_SCHEMA_ENGINE_BINARY'] ??= process.execPath;

export default defineConfig({
  schema: 'prisma/schema.prisma',
  migrations: { path: 'prisma/migrations' },
  ...(process.env['DATABASE_URL'] ? { datasource: { url: process.env['DATABASE_URL'] } } : {}),
});
