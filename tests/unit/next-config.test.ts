import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { PHASE_PRODUCTION_BUILD, PHASE_PRODUCTION_SERVER } from 'next/constants';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import configure from '../../next.config';

describe('A build', () => {
  const project = process.cwd();
  let folder: string;
  /** Files of app/, with their lines in the order in which Next.js tries them, and files that are neither page nor route. */
  const files = [
    ['page.tsx', 'page '],
    ['%5Fx/route.ts', 'route /_x'],
    ['q/!bang/page.tsx', 'page /q/!bang'],
    ['q/%40at/page.tsx', 'page /q/@at'],
    ['p/v1.0/route.ts', 'route /p/v1\\.0'],
    ['q/caf%C3%A9/p%2Bq/route.ts', 'route /q/café/p\\+q'],
    ['q/~tilde/[[...path]]/page.tsx', 'page /q/~tilde(?:/.+)?'],
    ['(marketing)/p/[slug]/page.tsx', 'page /p/([^/]+)'],
    ['q/[q]/route.ts', 'route /q/([^/]+)'],
    ['p/[slug]/v1/[id]/route.ts', 'route /p/([^/]+)/v1/([^/]+)'],
    ['p/[slug]/v1/[...rest]/route.ts', 'route /p/([^/]+)/v1/(.+)'],
    ['@modal/docs/[[...path]]/page.jsx', 'page /docs(?:/.+)?'],
    ['docs/layout.tsx'],
    ['_private/page.tsx'],
  ] as const;
  beforeEach(() => {
    folder = mkdtempSync(path.join(os.tmpdir(), 'next-config-test-'));
    process.chdir(folder);
    vi.stubEnv('VERCEL', '1');
    for (const [file] of files) {
      mkdirSync(path.dirname(`app/${file}`), { recursive: true });
      writeFileSync(`app/${file}`, '');
    }
  });
  afterEach(() => {
    process.chdir(project);
    rmSync(folder, { recursive: true, force: true });
    vi.unstubAllEnvs();
  });

  test('A build lists the pages and routes of app/ in the order in which Next.js tries them', () => {
    const lines = files.flatMap(([, line]) => line ?? []);
    expect(configure(PHASE_PRODUCTION_BUILD).env?.['APP_FILES']?.split('\n')).toEqual(lines);
  });

  test('Under next dev, a route that is added after the start belongs to the API', async () => {
    vi.stubEnv('NODE_ENV', 'development');
    const { isApi } = await import('#lib/http/address');
    expect(isApi('/added')).toBe(false);
    mkdirSync('app/added');
    writeFileSync('app/added/route.ts', '');
    expect(isApi('/added')).toBe(true);
  });

  test('A build with a .env.local file fails on Vercel, because the deployed functions would contain the file, and succeeds elsewhere', () => {
    expect(() => configure(PHASE_PRODUCTION_BUILD)).not.toThrow();
    writeFileSync('.env.local', '');
    expect(() => configure(PHASE_PRODUCTION_BUILD)).toThrow('must not find .env.local');
    expect(() => configure(PHASE_PRODUCTION_SERVER)).not.toThrow();
    vi.stubEnv('VERCEL', '');
    expect(() => configure(PHASE_PRODUCTION_BUILD)).not.toThrow();
  });
});

test('A build fails for type errors in production code only', () => {
  const { typescript } = configure(PHASE_PRODUCTION_BUILD);
  expect(typescript?.ignoreBuildErrors ?? false).toBe(false);
  const { stdout } = spawnSync(
    process.execPath,
    ['node_modules/typescript/bin/tsc', '--project', typescript?.tsconfigPath ?? '', '--listFilesOnly'],
    { encoding: 'utf8' },
  );
  const checked = new Set(stdout.split('\n').map((file) => path.relative('.', file).split(path.sep)[0]));
  expect([...checked]).toEqual(expect.arrayContaining(['app', 'lib', 'middleware.ts', 'server.ts']));
  for (const name of ['bench', 'dev', 'examples', 'packages', 'tests', 'tools'])
    expect(checked).not.toContain(name);
});
