import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { z } from 'zod';
import { clerkJsFolder, projectFolder } from '../../../dev/stack/settings';
import { freePort } from '../../../dev/system/listen';
import { killOnExit } from '../../../dev/system/processes';
import { chromiumOptions } from '../browser/chromium';
import { withoutServiceVariables } from '../build';

const Result = z.object({ errors: z.array(z.object({ message: z.string().optional() })) });
const Test = z.object({
  title: z.string(),
  ok: z.boolean(),
  tests: z.array(z.object({ results: z.array(Result) })),
});
const Report = z.object({
  stats: z.object({ expected: z.number(), unexpected: z.number(), flaky: z.number(), skipped: z.number() }),
  suites: z.array(z.object({ specs: z.array(Test) })),
});

/** Exact versions of packages, by name. */
export type Packages = Readonly<Record<string, string>>;

interface HostOptions {
  /** Contents of the test files, by name. Playwright runs each file in one worker. */
  readonly files: Readonly<Record<string, string>>;
  /** Packages that npm installs. Default: none, so that the run does not need the npm registry. */
  readonly packages?: Packages;
  /** Additional environment variables of the tests. */
  readonly variables?: Readonly<Record<string, string>>;
}

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

/** Writes a `package.json` and installs the packages. Runs no install scripts. */
export async function installPackages(folder: string, packages: Packages): Promise<void> {
  await writeFile(
    path.join(folder, 'package.json'),
    JSON.stringify({ private: true, dependencies: packages }),
  );
  if (Object.keys(packages).length === 0) return;
  const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];
  await promisify(execFile)('npm', ['install', ...options], { cwd: folder, env: withoutServiceVariables() });
}

/**
 * Copies the emulator of the identity provider into the `node_modules` folder of an application. A symbolic link would lead to
 * a folder outside `node_modules`, and Playwright would compile the modules in that folder. Playwright does not compile the
 * modules below `node_modules`.
 *
 * Playwright, `@clerk/backend` and the dependencies of the emulator are below `node_modules` of this project, so symbolic links
 * to them are safe. Creates a link to each of these packages that the application does not have.
 */
async function installEmulator(folder: string): Promise<void> {
  const installed = (name: string) => path.join(projectFolder, 'node_modules', name);
  const emulator = path.join(folder, 'node_modules/clerk-emulator');
  await cp(await realpath(installed('clerk-emulator')), emulator, { recursive: true });
  const { dependencies } = Manifest.parse(
    JSON.parse(await readFile(path.join(emulator, 'package.json'), 'utf8')),
  );
  for (const name of ['playwright', '@clerk/backend', ...Object.keys(dependencies)]) {
    const link = path.join(folder, 'node_modules', name);
    if (existsSync(link)) continue;
    await mkdir(path.dirname(link), { recursive: true });
    await symlink(installed(name), link, 'junction');
  }
}

/**
 * Runs Playwright in a separate CommonJS application that uses the emulator as an npm package. Two workers share one emulator.
 * Resolves with the numbers of tests by result, and with the errors of each test. Rejects if Playwright writes no report.
 */
export async function runPlaywrightHost({ files, packages = {}, variables = {} }: HostOptions) {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'identity-link-tests-playwright-'));
  try {
    await installPackages(folder, packages);
    await installEmulator(folder);
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
    const written = {
      'server.js': SERVER,
      'playwright.config.ts': `export default ${JSON.stringify(configuration)};`,
      ...files,
    };
    for (const [name, content] of Object.entries(written)) await writeFile(path.join(folder, name), content);
    const modules = path.join(folder, 'node_modules');
    const emulator = [path.join(modules, 'clerk-emulator/bin.mjs'), 'dev'];
    emulator.push('--clerk-js-folder', clerkJsFolder);
    const playwright = [path.join(modules, 'playwright/cli.js'), 'test'];
    const child = spawn(process.execPath, [...emulator, '--', process.execPath, ...playwright], {
      cwd: folder,
      env: { ...process.env, ...variables },
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
    const { stats, suites } = Report.parse(JSON.parse(report));
    const tests = suites
      .flatMap(({ specs }) => specs)
      .map(({ title, ok, tests }) => ({
        title,
        ok,
        errors: tests.flatMap(({ results }) => results.flatMap(({ errors }) => errors)),
      }));
    return { ...stats, tests };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Signs up `perWorker` users in each of two Playwright workers, which share one emulator. */
export async function runSignUps(perWorker: number) {
  const signUps = await readFile(new URL('./sign-ups.ts', import.meta.url), 'utf8');
  // One file for each worker.
  const files = { 'first.spec.ts': signUps, 'second.spec.ts': signUps };
  return runPlaywrightHost({ files, variables: { SIGN_UPS: String(perWorker) } });
}
