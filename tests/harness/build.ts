import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { startProcess } from '../../dev/system/start-process';

/** Folder of the production build that all test files share. It is not `.next`, so `npm run dev` can run during the tests. */
export const BUILD_FOLDER = '.next-test';

/**
 * Variables that are set during the build, so that tests/service/start-up.test.ts can search the output for their values. The
 * output must not contain these values, because the service reads the variables at run time.
 */
export const BUILD_TIME_VALUES = {
  IDP_SECRET_KEY: 'sk_test_valueofthebuildsecretkey',
  IDP_PUBLISHABLE_KEY: `pk_test_${Buffer.from('build.clerk.accounts.dev$').toString('base64')}`,
  IDP_WEBHOOK_SIGNING_SECRET: `whsec_${Buffer.from('a signing secret of the build...').toString('base64')}`,
  DATABASE_URL: 'postgresql://build:passwordofthebuild@127.0.0.1:1/build',
  KV_REST_API_URL: 'http://127.0.0.1:1/kv-of-the-build',
  KV_REST_API_TOKEN: 'token-of-the-build',
} as const;

/**
 * Returns the environment of this process without the variables that configure the service. Sets NODE_ENV to production and
 * turns the telemetry of Next.js off.
 */
export function withoutServiceVariables(): NodeJS.ProcessEnv {
  const configures =
    /^(?:IDP_|KV_|CLERK_|NEXT_|OTEL_|(?:MIGRATION_)?DATABASE_URL$|USER_ID_CACHE_|VERDICT_|VITEST|TESTS_|PORT$)/;
  return {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !configures.test(name))),
    NODE_ENV: 'production',
    NEXT_TELEMETRY_DISABLED: '1',
  };
}

/** File that contains the digest of the sources of the current build. */
const DIGEST_FILE = path.join(BUILD_FOLDER, 'source-digest');
/**
 * Entries of the checkout that are not part of the digest, because a build does not read them or because it writes them. The
 * digest includes `node_modules/.package-lock.json` instead of `node_modules`.
 */
const NOT_READ = new Set([
  '.git',
  '.github',
  '.ci',
  '.local',
  '.next',
  BUILD_FOLDER,
  'node_modules',
  'bench',
  'biome',
  'dev',
  'docs',
  'examples',
  'packages',
  'tests',
  'tools',
  'next-env.d.ts',
]);

/** Returns a digest of everything that the build reads, including the version of Node.js. */
function digestOfSources(): string {
  const digest = createHash('sha256').update(process.version);
  const entries = readdirSync('.').filter((name) => !NOT_READ.has(name) && !name.endsWith('.md'));
  for (const entry of [...entries, 'node_modules/.package-lock.json']) {
    const files = statSync(entry).isDirectory()
      ? readdirSync(entry, { recursive: true, encoding: 'utf8' }).map((name) => path.join(entry, name))
      : [entry];
    for (const file of files.toSorted())
      if (statSync(file).isFile()) digest.update(file).update(readFileSync(file));
  }
  return digest.digest('hex');
}

/** Builds into BUILD_FOLDER, however long it takes. Rejects if a step fails. Next.js prints type errors to stdout. */
async function build(): Promise<void> {
  rmSync(DIGEST_FILE, { force: true });
  const env = { ...withoutServiceVariables(), ...BUILD_TIME_VALUES, NEXT_DIST_DIR: BUILD_FOLDER };
  for (const step of [['node_modules/next/dist/bin/next', 'build'], ['commands/build-server.mjs']]) {
    const { exited } = startProcess(process.execPath, step, { env, output: 'inherit' });
    const end = await exited;
    if (end !== 0) throw new Error(`The build ended with ${end}: ${step.join(' ')}`);
  }
}

/** Builds this checkout unless the current build has the same sources. */
export async function buildIfChanged(): Promise<void> {
  const sources = digestOfSources();
  if (existsSync(DIGEST_FILE) && readFileSync(DIGEST_FILE, 'utf8') === sources) return;
  await build();
  writeFileSync(DIGEST_FILE, sources);
}
