import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { BrowserContextOptions, Page } from 'playwright';
import { endProcess, endWithThisProcess, waitUntil } from '../dev/processes';
import { findStack, type StackDetails } from '../dev/stack-file';
import { launchBrowser } from '../tests/support/chromium';

/**
 * Makes the pictures of the README in docs/screenshots, from the production build on a local stack of its own:
 * `npm run screenshots`. Takes about a minute; nothing of it is left running.
 */
const OUTPUT = 'docs/screenshots';
const UP_MS = 300_000;
const ADA = { email: 'ada@example.com', password: 'an engine of thought' };

const wide: BrowserContextOptions = { viewport: { width: 1200, height: 860 }, colorScheme: 'light' };
const dark: BrowserContextOptions = { ...wide, colorScheme: 'dark' };
const narrow: BrowserContextOptions = {
  viewport: { width: 360, height: 740 },
  deviceScaleFactor: 2,
  colorScheme: 'light',
};

type Provider = NonNullable<StackDetails['identityProvider']>;

/** The service behaves the same to users of the Backend API, who need no mailbox. */
async function createAda({ url, secretKey }: Provider): Promise<void> {
  const response = await fetch(`${url}/v1/users`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secretKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      email_address: [ADA.email],
      password: ADA.password,
      first_name: 'Ada',
      last_name: 'L.',
    }),
    signal: AbortSignal.timeout(30_000),
  });
  if (!response.ok) throw new Error(`The user was not created: ${await response.text()}`);
}

async function signIn(page: Page): Promise<void> {
  await page.goto('/sign-in');
  await page.getByLabel('Email address').fill(ADA.email);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByLabel('Password', { exact: true }).fill(ADA.password);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.waitForURL('/account');
  await page.locator('dd code').nth(1).waitFor();
  await page.getByRole('button', { name: 'Open user menu' }).waitFor();
}

/** What is photographed: the name of the picture, how, and the steps to it. */
const pictures: readonly [
  string,
  BrowserContextOptions,
  (page: Page, stack: StackDetails) => Promise<unknown>,
][] = [
  ['home', wide, (page) => page.goto('/')],
  [
    'sign-up',
    wide,
    async (page) => {
      await page.goto('/sign-up');
      await page.getByRole('button', { name: 'Continue' }).waitFor();
    },
  ],
  ['account', wide, signIn],
  [
    'account-dark',
    dark,
    async (page) => {
      await signIn(page);
      await page.getByRole('button', { name: 'Send POST' }).click();
      await page.getByRole('region', { name: 'Response' }).waitFor();
    },
  ],
  ['account-narrow', narrow, signIn],
  [
    'console',
    wide,
    async (page, { identityProvider }) => {
      await page.goto(identityProvider?.consoleUrl ?? 'about:blank');
      await page.getByText('user.created').filter({ visible: true }).first().waitFor();
    },
  ],
];

async function photograph(stack: StackDetails): Promise<void> {
  const browser = await launchBrowser();
  try {
    for (const [name, how, steps] of pictures) {
      const context = await browser.newContext({ baseURL: stack.app, reducedMotion: 'reduce', ...how });
      const page = await context.newPage();
      await steps(page, stack);
      await page.evaluate(() => Promise.all(document.getAnimations().map(({ finished }) => finished)));
      await page.screenshot({ path: path.join(OUTPUT, `${name}.png`), fullPage: how === dark });
      await context.close();
      console.log(`${OUTPUT}/${name}.png`);
    }
  } finally {
    await browser.close();
  }
}

async function main(): Promise<void> {
  mkdirSync(OUTPUT, { recursive: true });
  const folder = mkdtempSync(path.join(os.tmpdir(), 'identity-link-screenshots-'));
  const child = spawn(process.execPath, ['--import', 'tsx', 'dev/main.ts', 'preview'], {
    env: { ...process.env, LOCAL_FOLDER: folder },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (child.pid === undefined) throw new Error('The local stack could not be started');
  const { pid } = child;
  const forget = endWithThisProcess(pid, 'SIGTERM');
  try {
    let stack: StackDetails | undefined;
    await waitUntil(async () => {
      stack = await findStack(folder);
      return stack !== undefined || child.exitCode !== null;
    }, UP_MS);
    if (!stack?.identityProvider) throw new Error('The local stack did not come up');
    await createAda(stack.identityProvider);
    await photograph(stack);
  } finally {
    await endProcess(pid, [{ signal: 'SIGTERM', milliseconds: 40_000 }]);
    forget();
    rmSync(folder, { recursive: true, force: true });
  }
}

await main();
