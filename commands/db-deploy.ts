import { DatabaseError } from 'pg';
import { readDatabaseUrl } from '#lib/base/database-url';
import { messageOf } from '#lib/base/errors';
import { deployMigrations } from '#lib/storage/migrations';
import { createProgram, runMain } from './command';

/** Returns true in a Vercel build that is not for production. Such a build must not migrate the production database. */
function isPreview(): boolean {
  const { VERCEL_ENV } = process.env;
  return VERCEL_ENV !== undefined && VERCEL_ENV !== 'production';
}

/**
 * Returns the variable with the database URL. MIGRATION_DATABASE_URL is for the role that owns the tables. A preview build
 * ignores it, because Vercel's dashboard adds new variables to previews by default, and its value may belong to production.
 */
function databaseVariable(): readonly [string, string] {
  const name =
    !isPreview() && process.env['MIGRATION_DATABASE_URL']?.trim() ? 'MIGRATION_DATABASE_URL' : 'DATABASE_URL';
  const value = process.env[name]?.trim();
  if (!value) throw new Error('DATABASE_URL is not set. Set it to a postgresql:// URL.');
  const parsed = readDatabaseUrl(value);
  if ('problem' in parsed) throw new Error(`${name} ${parsed.problem}.`);
  return [name, parsed.value];
}

/** Returns the message of an error of the database. It contains no password. */
function explain(error: unknown, variable: string): string {
  const cause = error instanceof Error && error.cause ? error.cause : error;
  // 42501 is insufficient_privilege.
  if (!(cause instanceof DatabaseError && cause.code === '42501')) return messageOf(error);
  const remedy = isPreview()
    ? 'In a preview, the role of DATABASE_URL must own the tables'
    : 'Set MIGRATION_DATABASE_URL to the URL of the role that owns the tables';
  return `the role of ${variable} lacks a privilege: ${cause.message}. ${remedy} (docs/deploy.md).`;
}

async function deploy(): Promise<void> {
  if (isPreview() && process.env['MIGRATE_PREVIEW_DATABASE'] !== '1') {
    console.warn(
      'NOT MIGRATED: this is not a production build. If this build has its own database, set MIGRATE_PREVIEW_DATABASE=1.',
    );
    return;
  }
  const [variable, databaseUrl] = databaseVariable();
  const applied = await deployMigrations(databaseUrl).catch((error: unknown) => {
    throw new Error(`The migrations were not deployed: ${explain(error, variable)}`);
  });
  for (const name of applied) console.log(`applied ${name}`);
  if (applied.length === 0) console.log('nothing to apply: the database is up to date');
}

await runMain(
  createProgram(
    'db:deploy',
    'Applies the pending migrations to MIGRATION_DATABASE_URL or DATABASE_URL.',
  ).action(deploy),
);
