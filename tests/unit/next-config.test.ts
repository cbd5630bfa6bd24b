import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { PHASE_PRODUCTION_BUILD, PHASE_PRODUCTION_SERVER } from 'next/constants';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import configure from '../../next.config';

describe('A build for deployment', () => {
  const project = process.cwd();
  const folder = mkdtempSync(path.join(os.tmpdir(), 'next-config-test-'));
  beforeEach(() => {
    process.chdir(folder);
    vi.stubEnv('VERCEL', '1');
  });
  afterEach(() => {
    process.chdir(project);
    rmSync(folder, { recursive: true, force: true });
    vi.unstubAllEnvs();
  });

  test('A build for deployment fails if there is a .env.local file, which the functions would contain', () => {
    expect(() => configure(PHASE_PRODUCTION_BUILD)).not.toThrow();
    writeFileSync('.env.local', '');
    expect(() => configure(PHASE_PRODUCTION_BUILD)).toThrow('must not find .env.local');
    expect(() => configure(PHASE_PRODUCTION_SERVER)).not.toThrow();
    vi.stubEnv('VERCEL', '');
    expect(() => configure(PHASE_PRODUCTION_BUILD)).not.toThrow();
  });
});

test('A build fails if there are type errors', () => {
  expect(configure(PHASE_PRODUCTION_BUILD).typescript?.ignoreBuildErrors ?? false).toBe(false);
});
