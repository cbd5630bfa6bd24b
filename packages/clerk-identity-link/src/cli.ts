#!/usr/bin/env node
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { init } from './init';
import { loadTypeScript } from './project';
import { findUnlinked } from './sources';

const USAGE = `Usage: clerk-identity-link init
       clerk-identity-link doctor [user_…] [org_…]`;

const FILES = ['lib/identity.ts', 'src/lib/identity.ts', 'identity.ts', 'src/identity.ts'];

const NOT_SEEN =
  'raw SQL, nested writes, type any, methods in variables, tests, scripts, seeds, other repositories';

/** Runs the checks with the tsx of the application, and with the variables that its Next.js reads. Returns the exit status. */
function runChecks(application: string, file: string, ids: readonly string[]): number {
  const { resolve } = createRequire(path.resolve(application, 'package.json'));
  try {
    const load = createRequire(resolve('next/package.json'));
    const env: { loadEnvConfig(folder: string, isDevelopment: boolean): void } = load('@next/env');
    env.loadEnvConfig(application, process.env['NODE_ENV'] !== 'production');
  } catch {
    // Without Next.js, the variables are those of the shell.
  }
  try {
    const tsx = pathToFileURL(resolve('tsx')).href;
    const conditions = ['--conditions=clerk-identity-link', '--conditions=react-server'];
    const checks = fileURLToPath(new URL('checks.js', import.meta.url));
    const args = ['--import', tsx, ...conditions, checks, file, ...ids];
    return spawnSync(process.execPath, args, { cwd: application, stdio: 'inherit' }).status ?? 1;
  } catch {
    console.log('FAILURE   the checks: tsx is missing. Run: npm install --save-dev tsx');
    return 1;
  }
}

/** Lists what goes past the link in the sources, and runs the checks. */
function doctor(application: string, ids: readonly string[]): void {
  const file = FILES.find((name) => existsSync(path.join(application, name)));
  if (!file) throw new Error('There is no lib/identity.ts. Run clerk-identity-link init.');
  const found = findUnlinked(loadTypeScript(application), application);
  for (const text of found) console.log(text);
  const isLinked = !found.some((text) => text.startsWith('FAILURE'));
  if (!isLinked) console.log('          Or write above the line: // identity-link: <reason>');
  console.log(`${isLinked ? 'ok       ' : '         '} the sources. Not seen: ${NOT_SEEN}.`);
  process.exitCode = runChecks(application, file, ids) || (isLinked ? 0 : 1);
}

const [command, ...given] = process.argv.slice(2);
try {
  if (command === 'init') init(loadTypeScript(process.cwd()), process.cwd());
  else if (command === 'doctor') doctor(process.cwd(), given);
  else console.log(USAGE);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
