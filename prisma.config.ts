import nextEnv from '@next/env';
import { defineConfig } from 'prisma/config';

// Loads the .env files, as the application does. A variable that is already set keeps its value.
const isDevelopment = process.env['NODE_ENV'] === 'development';
nextEnv.loadEnvConfig(process.cwd(), isDevelopment);

// Prisma's CLI downloads its schema engine before `generate`, `validate` and `format`, although these commands do not use the
// engine. The CLI skips the download if PRISMA_SCHEMA_ENGINE_BINARY is the path of an executable. `prisma migrate` needs the
// engine.
const needsNoEngine = ['generate', 'validate', 'format'].some((command) => process.argv.includes(command));
if (needsNoEngine) process.env['PRISMA_SCHEMA_ENGINE_BINARY'] ??= process.execPath;
if (process.argv.includes('migrate') && !process.env['PRISMA_SCHEMA_ENGINE_BINARY']) {
  process.stderr.write(
    'prisma migrate downloads its engine from binaries.prisma.sh. If that host is unreachable, write prisma/migrations/<time>_<name>/migration.sql ' +
      'by hand and run npm run db:deploy. `prisma migrate resolve` also needs the engine.\n',
  );
}

// Migrations run as the owner of the tables, as in `npm run db:deploy`. The role of DATABASE_URL may have fewer privileges.
const url = process.env['MIGRATION_DATABASE_URL'] || process.env['DATABASE_URL'];

export default defineConfig({
  schema: 'prisma',
  migrations: { path: 'prisma/migrations' },
  ...(url ? { datasource: { url } } : {}),
});
