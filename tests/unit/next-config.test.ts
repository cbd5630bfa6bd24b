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
  const files = [
    'page.tsx',
    '(marketing)/p/[slug]/page.tsx',
    'p/v1.0/route.ts',
    'p/[slug]/v1/[...rest]/route.ts',
    'p/[slug]/v1/[id]/route.ts',
    '@modal/docs/[[...path]]/page.jsx',
    'docs/layout.tsx',
    '%5Fx/route.ts',
    '_private/page.tsx',
    'q/caf%C3%A9/p%2Bq/route.ts',
    'q/%40at/page.tsx',
    'q/!bang/page.tsx',
    'q/~tilde/[[...path]]/page.tsx',
    'q/[q]/route.ts',
  ];
  beforeEach(() => {
    folder = mkdtempSync(path.join(os.tmpdir(), 'next-config-test-'));
    process.chdir(folder);
    vi.stubEnv('VERCEL', '1');
    for (const file of files) {
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
    expect(configure(PHASE_PRODUCTION_BUILD).env?.['APP_FILES']?.split('\n')).toEqual([
      'page ',
      'route /_x',
      'page /q/!bang',
      'page /q/@at',
      'route /p/v1\\.0',
      'route /q/café/p\\+q',
      'page /q/~tilde(?:/.+)?',
      'page /p/([^/]+)',
      'route /q/([^/]+)',
      'route /p/([^/]+)/v1/([^/]+)',
      'route /p/([^/]+)/v1/(.+)',
      'page /docs(?:/.+)?',
    ]);
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
