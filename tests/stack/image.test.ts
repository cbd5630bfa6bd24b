import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, lstatSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { copyCheckout } from '../../tools/temporary-project';
import { withoutServiceVariables } from '../harness/build';
import { startDependencies, startServiceProcess } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';
import { temporaryFolder } from '../vitest/temporary-folder';

const MAX_BYTES = 250_000_000;

const [checkout, image] = [temporaryFolder(), temporaryFolder()];
const dependencies = stopAfterAll(await startDependencies());

test('A build of the service with the example mcp, without devDependencies and variables, creates the files of the last stage of the Dockerfile, which have at most 250 MB and serve requests until SIGTERM. Without variables, it does not start', async () => {
  copyCheckout(checkout);
  cpSync('examples/mcp/app', path.join(checkout, 'app'), { recursive: true });
  // npm writes this file in place, and the copy is a hard link.
  rmSync(path.join(checkout, 'node_modules/.package-lock.json'));
  const options = { cwd: checkout, env: withoutServiceVariables(), stdio: 'pipe' } as const;
  const [, dependency = ''] =
    /npm install --save-prod (\S+)/.exec(readFileSync('docs/build.md', 'utf8')) ?? [];
  for (const command of [['install', '--save-prod', dependency], ['prune']])
    execFileSync(
      'npm',
      [...command, '--omit=dev', '--prefer-offline', '--ignore-scripts', '--no-audit'],
      options,
    );
  execFileSync('npm', ['run', 'build'], options);
  const { status, stderr } = spawnSync('npm', ['start', '--', '-p', '0'], { ...options, encoding: 'utf8' });
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: expect.stringContaining('IDP_SECRET_KEY is missing'),
  });

  const [lastStage = ''] = readFileSync('Dockerfile', 'utf8')
    .split(/^FROM /m)
    .toReversed();
  for (const [, source = '', target = ''] of lastStage.matchAll(/^COPY --from=build \/app\/(\S+) (\S+)$/gm)) {
    const [from, to] = [path.join(checkout, source), path.join(image, target)];
    cpSync(from, to, { recursive: true, verbatimSymlinks: true });
  }
  const files = readdirSync(image, { recursive: true, encoding: 'utf8' });
  const sizes = files.map((file) => lstatSync(path.join(image, file)).size);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(MAX_BYTES);

  const [, program = ''] = /^CMD \["node", "(\S+)"\]$/m.exec(lastStage) ?? [];
  const environment = { ...dependencies.environment, NEXT_DIST_DIR: path.join(image, '.next') };
  const { url, pid, exited } = await startServiceProcess(environment, undefined, [path.join(image, program)]);
  expect((await fetch(`${url}/health/ready`)).status).toBe(200);
  expect((await fetch(`${url}/mcp/v1`, { method: 'POST' })).status).toBe(401);
  const page = await (await fetch(url)).text();
  const [chunk = ''] = /\/_next\/static\/[\w./~-]+\.js/.exec(page) ?? [];
  expect((await fetch(`${url}${chunk}`)).status).toBe(200);
  process.kill(pid, 'SIGTERM');
  expect(await exited).toBe(0);
});
