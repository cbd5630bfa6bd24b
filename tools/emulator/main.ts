import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { createClerkClient } from '@clerk/backend';
import { signIn } from 'clerk-emulator/playwright';
import type { Browser } from 'playwright';
import { clerkJsFolder, projectFolder } from '../../dev/stack/settings';
import { messageOf } from '../../dev/system/errors';
import { freePort } from '../../dev/system/listen';
import { killOnExit, waitUntil } from '../../dev/system/processes';
import { removeStaleFiles } from '../../dev/system/stale-files';
import { launchBrowser } from '../../tests/harness/browser/chromium';
import { withoutServiceVariables } from '../../tests/harness/build';
import { installPackages, runPlaywrightHost, runSignUps } from '../../tests/harness/playwright-host/host';
import { clerkTesting, clerkTestingSpec } from './clerk-testing';
import { type Host, hosts } from './hosts';

/**
 * `npm run emulator:sdks`: installs each Clerk SDK of hosts.ts into a separate application and starts the application with
 * `clerk-emulator dev`. Prints a table with the result of each check, and a second table for Clerk's helpers for Playwright.
 * Then signs up 100 users in two Playwright workers. Exits with 1 if a check fails. Needs the npm registry.
 *
 * `npm run emulator:sdks -- --sign-ups 10` only runs the sign-ups, ten times.
 */
const { values } = parseArgs({ options: { 'sign-ups': { type: 'string' } } });
const PREFIX = 'identity-link-tests-hosts-';
const SIGN_UPS_PER_WORKER = 50;
const BIN = path.join(projectFolder, 'packages/clerk-emulator/bin.mjs');

type Result = 'yes' | 'no' | '-';

const failures: string[] = [];

/** Runs a check and returns its result for the table. Adds the error of a failed check to `failures`. */
async function check(what: string, run: () => Promise<void>): Promise<Result> {
  try {
    await run();
    return 'yes';
  } catch (error) {
    failures.push(`${what}: ${messageOf(error)}`);
    return 'no';
  }
}

/** Part of the page of a signed-out user. The page of Next.js contains this text with HTML entities instead of quotes. */
const SIGNED_OUT = '"userId":null';

function expectText(html: string, expected: string): void {
  const text = html.replaceAll('&quot;', '"');
  if (!text.includes(expected)) throw new Error(`expected ${expected}, but got ${text.slice(0, 300)}`);
}

async function install({ packages, files }: Host, folder: string): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(folder, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
  await installPackages(folder, packages);
}

/** Starts an application with `clerk-emulator dev`. Resolves when the application responds, or after 120 s at the latest. */
async function start({ sdk, command }: Host, folder: string) {
  const secretKey = 'sk_test_c2RrcyBvZiB0aGUgZW11bGF0b3I';
  const [port, emulatorPort] = [await freePort(), await freePort()];
  const [url, apiUrl] = [`http://localhost:${port}`, `http://127.0.0.1:${emulatorPort}`];
  const options = ['--port', String(emulatorPort), '--secret-key', secretKey];
  const all = [BIN, 'dev', ...options, '--clerk-js-folder', clerkJsFolder, '--', ...command];
  const child = spawn(process.execPath, all, {
    cwd: folder,
    env: { ...withoutServiceVariables(), NODE_ENV: 'development', PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    errors += chunk;
  });
  const exited = once(child, 'exit');
  if (child.pid !== undefined) child.once('exit', killOnExit(child.pid, 'SIGTERM'));
  const responds = () =>
    fetch(url).then(
      ({ status }) => status < 500,
      () => false,
    );
  const isReady = await waitUntil(responds, 120_000);
  const clerk = createClerkClient({ secretKey, apiUrl, telemetry: { disabled: true } });
  return {
    url,
    apiUrl,
    clerk,
    async stop() {
      child.kill('SIGTERM');
      await exited;
    },
    requireReady() {
      if (!isReady) throw new Error(`The application with ${sdk} did not start:\n${errors}`);
    },
  };
}

/** Runs the checks of an application. Returns a row of the table. */
async function checkHost(host: Host, folder: string, browser: Browser): Promise<string[]> {
  await install(host, folder);
  const { url, apiUrl, clerk, stop, requireReady } = await start(host, folder);
  const context = await browser.newContext({ baseURL: url });
  context.setDefaultTimeout(60_000);
  try {
    requireReady();
    const emailAddress = ['host@example.com'];
    const user = await clerk.users.createUser({ emailAddress, skipPasswordRequirement: true });
    const { id } = await clerk.sessions.createSession({ userId: user.id });
    const { jwt } = await clerk.sessions.getToken(id);
    const request = async (token: string) =>
      (await fetch(url, { headers: { authorization: `Bearer ${token}` } })).text();
    const page = await context.newPage();
    const shown = async () => {
      await page.goto('/');
      return page.locator('pre').first().innerText();
    };
    const named = (what: string, run: () => Promise<void>) => check(`${host.sdk}, ${what}`, run);
    const [header, claims, signature = ''] = jwt.split('.');
    const forged = [header, claims, Buffer.from(signature, 'base64url').reverse().toString('base64url')];
    return [
      host.sdk,
      host.packages[host.sdk] ?? '',
      await named('bearer token', async () => expectText(await request(jwt), user.id)),
      await named('forged token', async () => expectText(await request(forged.join('.')), SIGNED_OUT)),
      await named('user of the Backend API', async () => expectText(await request(jwt), 'host@example.com')),
      await named('cookies of signIn', async () => {
        const { token } = await clerk.signInTokens.createSignInToken({
          userId: user.id,
          expiresInSeconds: 60,
        });
        const credentials = { strategy: 'ticket', ticket: token } as const;
        await signIn(context, { frontendApi: apiUrl, application: url, credentials });
        expectText(await shown(), user.id);
      }),
      await named('handshake', async () => {
        await context.clearCookies({ name: /^__session/ });
        expectText(await shown(), user.id);
      }),
      host.hasBrowserSdk
        ? await named('browser SDK', async () => {
            await page.locator('#browser').filter({ hasText: user.id }).waitFor();
          })
        : '-',
    ];
  } finally {
    await context.close();
    await stop();
  }
}

const COLUMNS = [
  ...['SDK', 'Version', 'Bearer token', 'Forged token rejected', 'Backend API'],
  ...['Cookies', 'Handshake', 'Browser SDK'],
];

const printRow = (row: readonly string[]) => console.log(`| ${row.join(' | ')} |`);

function printHeader(columns: readonly string[]): void {
  console.log();
  printRow(columns);
  printRow(columns.map(() => '---'));
}

/** Checks the server SDKs, each in a separate application. */
async function checkHosts(): Promise<void> {
  removeStaleFiles(os.tmpdir(), PREFIX);
  const parent = mkdtempSync(path.join(os.tmpdir(), PREFIX));
  process.once('exit', () => rmSync(parent, { recursive: true, force: true }));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
  const browser = await launchBrowser();
  printHeader(COLUMNS);
  try {
    for (const host of hosts) printRow(await checkHost(host, path.join(parent, host.sdk), browser));
  } finally {
    await browser.close();
  }
}

type Tests = Awaited<ReturnType<typeof runPlaywrightHost>>['tests'];

function recordErrors(tests: Tests): void {
  for (const { title, errors } of tests) {
    for (const { message } of errors) failures.push(`${title}: ${message}`);
  }
}

/** Checks `@clerk/testing` with a page that loads the browser SDK. */
async function checkClerkTesting(): Promise<void> {
  const files = { 'clerk-testing.spec.ts': clerkTestingSpec };
  const { tests } = await runPlaywrightHost({ files, packages: clerkTesting });
  printHeader([`@clerk/testing ${clerkTesting['@clerk/testing']} and the browser SDK`, 'Works']);
  for (const { title, ok } of tests) printRow([title, ok ? 'yes' : 'no']);
  printRow(['clerk.signIn with emailAddress', 'no: it always calls api.clerk.com']);
  if (tests.length === 0) failures.push('@clerk/testing: no test ran');
  recordErrors(tests);
}

/** Signs up users in two Playwright workers. Prints the result and the time. */
async function checkSignUps(): Promise<void> {
  const startedAt = performance.now();
  const { expected, unexpected, flaky, tests } = await runSignUps(SIGN_UPS_PER_WORKER);
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  console.log(
    `Playwright, 2 workers: ${expected} tests passed, ${flaky} were flaky, ${unexpected} failed, ${seconds} s.`,
  );
  if (unexpected + flaky > 0 || expected === 0)
    failures.push('Playwright: a test failed or was flaky, or no test passed');
  recordErrors(tests);
}

async function main(): Promise<void> {
  const runs = Number(values['sign-ups'] ?? 1);
  if (!(runs >= 1)) throw new Error('--sign-ups must be the number of runs, such as 10.');
  if (values['sign-ups'] === undefined) {
    await checkHosts();
    await checkClerkTesting();
  }
  for (let run = 0; run < runs; run += 1) await checkSignUps();
  for (const failure of failures) console.error(failure);
  process.exitCode = failures.length === 0 ? 0 : 1;
}

await main();
