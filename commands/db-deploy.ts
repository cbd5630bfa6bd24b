import { existsSync } from 'node:fs';
import { DatabaseError } from 'pg';
import { deployMigrations, messageOfError } from '../lib/migrations/deploy';

/**
 * Returns true if the role lacks the privilege to create, read or change `_prisma_migrations`, the table that records applied
 * migrations. Returns false if the SQL of a migration fails, because deployMigrations() then throws a plain Error.
 */
function isPrivilegeError(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === '42501'; // insufficient_privilege
}

/** Returns true in a Vercel build that is not for production. Such a build must not migrate the production database. */
function isPreview(): boolean {
  const { VERCEL_ENV } = process.env;
  return VERCEL_ENV !== undefined && VERCEL_ENV !== 'production';
}

function privilegeRemedy(): string {
  return isPreview()
    ? 'In a preview, the role of DATABASE_URL must own the tables'
    : 'Set MIGRATION_DATABASE_URL to the URL of the role that owns the tables';
}

async function main(): Promise<void> {
  if (isPreview() && process.env['MIGRATE_PREVIEW_DATABASE'] !== '1') {
    console.warn(
      'NOT MIGRATED: this is not a production build. If this build has its own database, set MIGRATE_PREVIEW_DATABASE=1.',
    );
    return;
  }
  // Loads `.env.local`, as the application does. A variable that is already set keeps its value.
  if (existsSync('.env.local')) process.loadEnvFile('.env.local');
  // MIGRATION_DATABASE_URL is for the role that owns the tables. The service uses a role with fewer privileges and does not
  // read this variable. A preview build also ignores this variable. Vercel's dashboard adds each new variable to previews by
  // default, so the value in a preview may be the URL of the production database.
  const hasOwner = !isPreview() && process.env['MIGRATION_DATABASE_URL']?.trim();
  const variable = hasOwner ? 'MIGRATION_DATABASE_URL' : 'DATABASE_URL';
  const databaseUrl = process.env[variable]?.trim();
  if (!databaseUrl) throw new Error('DATABASE_URL is not set. Set it to a postgresql:// URL.');
  // An error of the URL parser contains the URL with its password, so that error must not reach the output.
  if (!URL.canParse(databaseUrl) || !/^postgres(ql)?:$/.test(new URL(databaseUrl).protocol)) {
    throw new Error(`${variable} must be a postgresql:// URL.`);
  }
  const applied = await deployMigrations(databaseUrl).catch((error: unknown) => {
    throw isPrivilegeError(error)
      ? new Error(
          `the role of ${variable} lacks a privilege: ${messageOfError(error)}. ${privilegeRemedy()} (docs/deploy.md).`,
        )
      : error;
  });
  for (const name of applied) console.log(`applied ${name}`);
  if (applied.length === 0) console.log('nothing to apply: the database is up to date');
}

main().catch((error: unknown) => {
  console.error(`The migrations were not deployed: ${messageOfError(error)}`);
  process.exitCode = 1;
});
