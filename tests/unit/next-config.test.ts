import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { PHASE_PRODUCTION_BUILD, PHASE_PRODUCTION_SERVER } from 'next/constants';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import configure from '../../next.config.mjs';

describe('a build for deployment', () => {
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

  test('refuses to run with a .env.local, which would be packed into the functions', () => {
    expect(() => configure(PHASE_PRODUCTION_BUILD)).not.toThrow();
    writeFileSync('.env.local', '');
    expect(() => configure(PHASE_PRODUCTION_BUILD)).toThrow('must not find .env.local');
    expect(() => configure(PHASE_PRODUCTION_SERVER)).not.toThrow();
    vi.stubEnv('VERCEL', '');
    expect(() => configure(PHASE_PRODUCTION_BUILD)).not.toThrow();
  });
});

test('a build fails over type errors', () => {
  expect(configure(PHASE_PRODUCTION_BUILD).typescript?.ignoreBuildErrors ?? false).toBe(false);
});
