import { cpSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { BUILD_FOLDER } from '../harness/build';
import { startDependencies, startServiceProcess } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';
import { temporaryFolder } from '../vitest/temporary-folder';

const MAX_BYTES = 250_000_000;

const folder = temporaryFolder();
const dependencies = stopAfterAll(await startDependencies());

test('The files of the last stage of the Dockerfile have at most 250 MB and serve requests, and SIGTERM ends the process with code 0', async () => {
  const [lastStage = ''] = readFileSync('Dockerfile', 'utf8')
    .split(/^FROM /m)
    .toReversed();
  const inTestBuild = (file: string) => file.replace('.next', BUILD_FOLDER);
  for (const [, source = '', target = ''] of lastStage.matchAll(/^COPY --from=build \/app\/(\S+) (\S+)$/gm)) {
    const copy = path.join(folder, inTestBuild(target));
    cpSync(inTestBuild(source), copy, { recursive: true, verbatimSymlinks: true });
  }
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const sizes = files.map((file) => lstatSync(path.join(folder, file)).size);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(MAX_BYTES);

  const [, program = ''] = /^CMD \["node", "(\S+)"\]$/m.exec(lastStage) ?? [];
  const environment = { ...dependencies.environment, NEXT_DIST_DIR: path.join(folder, BUILD_FOLDER) };
  const { url, pid, exited } = await startServiceProcess(environment, undefined, [
    path.join(folder, inTestBuild(program)),
  ]);
  expect((await fetch(`${url}/health/ready`)).status).toBe(200);
  const page = await (await fetch(url)).text();
  const [chunk = ''] = /\/_next\/static\/[\w./~-]+\.js/.exec(page) ?? [];
  expect((await fetch(`${url}${chunk}`)).status).toBe(200);
  process.kill(pid, 'SIGTERM');
  expect(await exited).toBe(0);
});
