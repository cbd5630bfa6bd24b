import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../dev/system/listen';
import { BUILD_FOLDER, BUILD_TIME_VALUES, withoutServiceVariables } from '../harness/build';

/** Runs the built server until it exits or 30 s have passed. */
const start = async (environment: Record<string, string>, port?: number | string) => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [`${BUILD_FOLDER}/server.mjs`, '-p', String(port ?? (await freePort()))],
    {
      env: { ...withoutServiceVariables(), NEXT_DIST_DIR: BUILD_FOLDER, ...environment },
      encoding: 'utf8',
      timeout: 30_000,
    },
  );
  return { status, stderr, output: stdout + stderr };
};

test('The service exits with 1 and lists all missing variables if the environment is empty', async () => {
  const { status, output } = await start({});
  expect(status).toBe(1);
  for (const name of Object.keys(BUILD_TIME_VALUES)) expect(output).toContain(`- ${name} is missing`);
  expect(output.match(/Invalid environment variables/g)).toHaveLength(1);
});

test('The service exits with 1 if the port is invalid', async () => {
  const { status, stderr } = await start({}, '99999');
  expect({ status, stderr }).toMatchObject({ status: 1, stderr: expect.stringContaining('port') });
});

test('The service exits with 1 and prints one line if its port is in use', async () => {
  const other = createServer().listen(0);
  onTestFinished(() => void other.close());
  await once(other, 'listening');
  const address = other.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const { status, stderr } = await start(BUILD_TIME_VALUES, port);
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: `Port ${port} is in use. Choose another port with -p.\n`,
  });
});

describe('Build output', () => {
  const files = readdirSync(BUILD_FOLDER, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .filter((file) => !/^(?:dev|cache)$/.test(path.relative(BUILD_FOLDER, file).split(path.sep)[0] ?? ''));
  const filesWith = (texts: readonly string[]) =>
    files.filter((file) => {
      const content = readFileSync(file, 'latin1');
      return texts.some((text) => content.includes(text));
    });

  test('The build output contains no value of the variables that were set during the build', () => {
    expect(files.length).toBeGreaterThan(50);
    expect(filesWith(Object.values(BUILD_TIME_VALUES))).toEqual([]);
  });

  test('The build contains no code of the local stack', () => {
    const sources = execFileSync('git', ['ls-files', 'dev', 'packages'], { encoding: 'utf8' })
      .split('\n')
      .filter(Boolean);
    const traced = files
      .filter((file) => file.endsWith('.nft.json'))
      .flatMap((file) => readFileSync(file, 'utf8').match(/[^"]*\/(?:dev|packages)\/[^"]*/g) ?? []);
    expect(traced.filter((file) => sources.some((source) => file.endsWith(source)))).toEqual([]);
    // The Clerk emulator belongs to the local stack. Its error messages contain this text.
    expect(filesWith(['The emulator failed'])).toEqual([]);
  });
});
