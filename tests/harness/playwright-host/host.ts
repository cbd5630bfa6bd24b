import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { clerkJsFolder, projectFolder } from '../../../dev/stack/settings';
import { freePort } from '../../../dev/system/listen';
import { killOnExit } from '../../../dev/system/processes';
import { chromiumOptions } from '../browser/chromium';

const Report = z.object({
  stats: z.object({ expected: z.number(), unexpected: z.number(), flaky: z.number(), skipped: z.number() }),
});

/** Code of a server. Its page shows the user id that the server reads from the session, and the id that the browser SDK has. */
const SERVER = `
const { createServer } = require('node:http');
const { createClerkClient } = require('@clerk/backend');

const { env } = process;
const options = { publishableKey: env.CLERK_PUBLISHABLE_KEY, secretKey: env.CLERK_SECRET_KEY, apiUrl: env.CLERK_API_URL };
const clerk = createClerkClient({ ...options, jwtKey: env.CLERK_JWT_KEY });
const page = (userId) => \`<!doctype html><html lang="en"><title>host</title><link rel="icon" href="data:,">
  <p id="server">\${userId}</p><p id="browser"></p>
  <script src="\${env.CLERK_JS_URL}" crossorigin="anonymous"
    data-clerk-publishable-key="\${env.CLERK_PUBLISHABLE_KEY}" data-clerk-proxy-url="\${env.CLERK_PROXY_URL}"></script>
  <script type="module">
    await Clerk.load({ telemetry: false });
    document.querySelector('#browser').textContent = Clerk.user?.id ?? 'signed out';
  </script></html>\`;

createServer(async ({ url, headers }, response) => {
  const request = new Request(new URL(url, 'http://' + headers.host), { headers });
  const state = await clerk.authenticateRequest(request, { proxyUrl: env.CLERK_PROXY_URL });
  for (const [name, value] of state.headers) response.appendHeader(name, value);
  if (state.headers.has('location')) return response.writeHead(307).end();
  response.setHeader('content-type', 'text/html');
  response.end(page(state.toAuth()?.userId ?? 'signed out'));
}).listen(Number(env.PORT), '127.0.0.1');
`;

const Manifest = z.object({ dependencies: z.record(z.string(), z.string()) });

/**
 * Copies the emulator into the `node_modules` folder of an application, because Playwright compiles linked packages. Links all
 * other packages.
 */
async function install(folder: string): Promise<void> {
  const installed = (name: string) => path.join(projectFolder, 'node_modules', name);
  const emulator = path.join(folder, 'node_modules/clerk-emulator');
  await cp(await realpath(installed('clerk-emulator')), emulator, { recursive: true });
  const { dependencies } = Manifest.parse(
    JSON.parse(await readFile(path.join(emulator, 'package.json'), 'utf8')),
  );
  for (const name of ['playwright', '@clerk/backend', ...Object.keys(dependencies)]) {
    const link = path.join(folder, 'node_modules', name);
    await mkdir(path.dirname(link), { recursive: true });
    await symlink(installed(name), link, 'junction');
  }
}

/**
 * Runs Playwright in a separate CommonJS application. The emulator is the only part of this project in the application. Two
 * workers share one emulator, and each runs the tests of sign-ups.ts. Resolves with the numbers of tests by result. Rejects if
 * Playwright writes no report.
 */
export async function runPlaywrightHost(signUpsPerWorker: number) {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'identity-link-tests-playwright-'));
  try {
    await install(folder);
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const configuration = {
      workers: 2,
      timeout: 120_000,
      expect: { timeout: 60_000 },
      use: { baseURL: url, launchOptions: await chromiumOptions() },
      reporter: [['json', { outputFile: 'report.json' }]],
      webServer: { command: 'node server.js', url, env: { PORT: String(port) } },
    };
    const signUps = await readFile(new URL('./sign-ups.ts', import.meta.url), 'utf8');
    const files = {
      'package.json': JSON.stringify({ private: true }),
      'server.js': SERVER,
      'playwright.config.ts': `export default ${JSON.stringify(configuration)};`,
      // One file for each worker.
      'first.spec.ts': signUps,
      'second.spec.ts': signUps,
    };
    for (const [name, content] of Object.entries(files)) await writeFile(path.join(folder, name), content);
    const modules = path.join(folder, 'node_modules');
    const emulator = [path.join(modules, 'clerk-emulator/bin.mjs'), 'dev'];
    emulator.push('--clerk-js-folder', clerkJsFolder);
    const playwright = [path.join(modules, 'playwright/cli.js'), 'test'];
    const child = spawn(process.execPath, [...emulator, '--', process.execPath, ...playwright], {
      cwd: folder,
      env: { ...process.env, SIGN_UPS: String(signUpsPerWorker) },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    if (child.pid !== undefined) child.once('exit', killOnExit(child.pid, 'SIGTERM'));
    const [, stdout, stderr] = await Promise.all([
      once(child, 'exit'),
      text(child.stdout),
      text(child.stderr),
    ]);
    const report = await readFile(path.join(folder, 'report.json'), 'utf8').catch((cause: unknown) => {
      throw new Error(`Playwright wrote no report:\n${stdout}${stderr}`, { cause });
    });
    const { stats } = Report.parse(JSON.parse(report));
    return { ...stats, report };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
