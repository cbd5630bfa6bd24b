#!/usr/bin/env node
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { init, rootOf } from './init';
import { findUnlinked, loadTypeScript } from './sources';

const USAGE = `Usage: clerk-identity-link init
       clerk-identity-link doctor [user_…] [org_…]`;

const FILES = ['lib/identity.ts', 'src/lib/identity.ts', 'identity.ts', 'src/identity.ts'];

/** Lists what goes past the link in the sources. Returns false if something is left to do. */
function checkSources(application: string): boolean {
  const ts = loadTypeScript(application);
  if (!ts) {
    console.log(
      'FAILURE   the sources: TypeScript is missing, or is version 7, which has no stable JavaScript API.',
    );
    console.log('          Run: npx -p typescript@6 clerk-identity-link doctor');
    return false;
  }
  const found = findUnlinked(ts, rootOf(application));
  for (const text of found) console.log(`FAILURE   ${text}`);
  if (found.length > 0) console.log('          Or write above the line: // identity-link: <reason>');
  else console.log('ok        the sources. Not seen: raw SQL, nested writes, other repositories.');
  return found.length === 0;
}

/** Runs the checks with the environment and the TypeScript files of the application. Returns the exit status. */
function runChecks(application: string, file: string, ids: readonly string[]): number {
  const conditions = ['--conditions=clerk-identity-link', '--conditions=react-server'];
  const checks = fileURLToPath(new URL('checks.js', import.meta.url));
  const options = { cwd: application, stdio: 'inherit' } as const;
  const args = [...conditions, checks, file, ...ids];
  try {
    const tsx = createRequire(path.join(application, 'package.json')).resolve('tsx');
    return spawnSync(process.execPath, ['--import', pathToFileURL(tsx).href, ...args], options).status ?? 1;
  } catch {
    return spawnSync('npx', ['--yes', 'tsx', ...args], options).status ?? 1;
  }
}

function doctor(application: string, ids: readonly string[]): void {
  const file = FILES.find((name) => existsSync(path.join(application, name)));
  if (!file) throw new Error('There is no lib/identity.ts. Run clerk-identity-link init.');
  const isLinked = checkSources(application);
  process.exitCode = runChecks(application, file, ids) || (isLinked ? 0 : 1);
}

const [command, ...given] = process.argv.slice(2);
try {
  if (command === 'init') init(process.cwd());
  else if (command === 'doctor') doctor(process.cwd(), given);
  else console.log(USAGE);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
