import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { startOwnPostgres } from '../../tests/harness/parts/own-postgres';
import { startParts } from '../../tests/harness/service';
import { buildForPlatform, copyTree, fetchTool } from './build';
import { checksOfAnswers } from './checks-of-answers';
import { checksOfBuild } from './checks-of-build';
import { checksOfLife, type DeployWith } from './checks-of-life';
import { functionFigures } from './cold-start';
import { deploy } from './deployment';
import { printReport, runChecks } from './report';

/**
 * `npm run verify:vercel`: what Vercel's own build tool makes of the service, run as the platform runs it, over PostgreSQL, a
 * KV server and sessions of the local stack; no account is needed. Prints each function with its cold start, and every check;
 * ends with 1 if one failed. Takes four to ten minutes, one of them with frozen functions. Linux only.
 */
const stops: (() => unknown)[] = [];
let stopped: Promise<void> | undefined;
const stop = () => {
  stopped ??= (async () => {
    for (const each of stops.reverse()) await each();
  })();
  return stopped;
};
const interrupted = () => void stop().finally(() => process.exit(130));
process.once('SIGINT', interrupted).once('SIGTERM', interrupted);

/** The statements of docs/deploy.md, step 2, which make the role of the service. */
function roleOf(password: string): { readonly username: string; readonly statements: string } {
  const page = readFileSync('docs/deploy.md', 'utf8');
  const [, statements = '', username = ''] = /^```sql\n(CREATE ROLE (\w+) [^`]+)```$/m.exec(page) ?? [];
  return { username, statements: statements.replace("PASSWORD ''", `PASSWORD '${password}'`) };
}

async function verify(): Promise<void> {
  console.log('fetching the build tool, copying the tree');
  await fetchTool();
  const folder = mkdtempSync(path.join(os.tmpdir(), 'identity-link-vercel-'));
  stops.push(() => rmSync(folder, { recursive: true, force: true }));
  const tree = path.join(folder, 'tree');
  await copyTree(tree);

  const server = await startOwnPostgres();
  stops.push(server.stop);
  const password = randomBytes(24).toString('hex');
  const { username, statements } = roleOf(password);
  const parts = await startParts({
    // Not migrated: that is the build's to do.
    server: { ...server, template: 'template1' },
    databaseUrl: ({ url }) => Object.assign(new URL(url), { username, password }).href,
    keys: 'live',
    // They are for the local stack.
    environment: { CLERK_API_URL: '', CLERK_FAPI_URL: '' },
  });
  stops.push(parts.stop);
  const production = { ...parts.environment, MIGRATION_DATABASE_URL: parts.database.url };

  const local = path.join(tree, '.env.local');
  const built = await runChecks('build', [
    {
      title: 'a copy of the tree has no .env.local, and with one the build is refused',
      async run() {
        assert.ok(!existsSync(local));
        writeFileSync(local, 'IDP_SECRET_KEY=of-somebody\n');
        const { succeeded, words } = await buildForPlatform(tree, { VERCEL_ENV: 'preview' });
        rmSync(local);
        assert.ok(!succeeded);
        assert.match(words, /A build for deployment must not find \.env\.local/);
      },
    },
    {
      title: 'takes `vercel-build`: migrates the database as its owner, then builds',
      async run() {
        const { succeeded, words } = await buildForPlatform(tree, {
          ...production,
          VERCEL_ENV: 'production',
        });
        assert.ok(succeeded, words);
        assert.match(words, /^applied \d+_create_users$/m);
      },
    },
  ]);
  if (!built) return printReport([]);
  await parts.database.pool.query(statements);

  const output = path.join(tree, '.vercel', 'output');
  const start = async (name: string, apart: boolean, changes: Readonly<Record<string, string>> = {}) => {
    const ofPlatform = {
      VERCEL: '1',
      VERCEL_ENV: 'production',
      VERCEL_REGION: 'iad1',
      VERCEL_URL: 'identity-link.vercel.app',
    };
    const all = Object.entries({ ...ofPlatform, ...production, ...changes }).filter(
      ([, value]) => value !== '',
    );
    const deployment = await deploy({
      output,
      folder: path.join(folder, name),
      environment: Object.fromEntries(all),
      apart,
    });
    stops.push(deployment.stop);
    return deployment;
  };
  const within = await start('within', false);
  const apart = await start('apart', true);
  const deployWith: DeployWith = (changes) => start('changed', true, changes);
  const secrets = [
    parts.environment['IDP_SECRET_KEY'],
    parts.environment['IDP_WEBHOOK_SIGNING_SECRET'],
    parts.environment['KV_REST_API_TOKEN'],
    password,
    new URL(parts.database.url).password,
  ].filter((value) => value !== undefined);
  await runChecks('build', checksOfBuild(tree, within, secrets));
  // Nobody outside knows whether the platform's HTTP server is in a function's process: both are tried.
  await runChecks('server within', checksOfAnswers({ name: 'within', hasGate: true }, within, parts));
  await runChecks('server apart', checksOfAnswers({ name: 'apart', hasGate: false }, apart, parts));
  await runChecks('', checksOfLife([within, apart], parts, deployWith));
  printReport(await functionFigures(within, parts));
}

try {
  await verify();
} finally {
  await stop();
}
