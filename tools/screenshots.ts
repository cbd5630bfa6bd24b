import path from 'node:path';
import { type Browser, chromium, type Page } from 'playwright';
import {
  activateNewOrganization,
  codeOnConsole,
  shownLink,
  signIn,
  signUp,
} from '../tests/harness/browser/browser';
import { chromiumOptions } from '../tests/harness/browser/chromium';
import { createLocalStack, type Details } from '../tests/harness/stack';

/**
 * `npm run screenshots`: takes a screenshot of each page below, in light mode and 1280 pixels wide, and writes it to
 * docs/screenshots. Starts a separate local stack with the production build, and stops it at the end. Takes about two minutes.
 */
const OUTPUT = 'docs/screenshots';
const EMAIL = 'ada@example.com';
const WIDTH = 1_280;
/** Maximum height of a screenshot. The rest of a longer page is cut off. */
const MAX_HEIGHT = 1_800;

/** Functions that open a page and wait until it is complete. The key is the file name without the extension. */
const pages: Readonly<Record<string, (page: Page, consoleUrl: string) => Promise<unknown>>> = {
  home: async (page) => {
    await page.goto('/');
    await page.getByRole('link', { name: 'Create an account' }).waitFor();
  },
  docs: async (page) => {
    await page.goto('/docs');
    await page.getByRole('heading', { name: 'Register a user' }).waitFor();
  },
  'sign-in': async (page) => {
    await page.goto('/sign-in');
    await page.getByRole('button', { name: 'Continue' }).waitFor();
  },
  'sign-up': async (page) => {
    await page.goto('/sign-up');
    await page.getByRole('button', { name: 'Continue' }).waitFor();
  },
  'not-found': async (page) => {
    await page.goto('/no-such-page');
    await page.getByRole('heading', { name: 'There is no page here.' }).waitFor();
  },
  account: async (page) => {
    await signIn(page, EMAIL);
    await shownLink(page);
    await activateNewOrganization(page);
    await page.getByRole('button', { name: 'Copy Tenant id' }).waitFor();
    await page.getByRole('button', { name: 'Send GET' }).click();
    await page.getByRole('region', { name: 'Response' }).waitFor();
  },
  console: async (page, consoleUrl) => {
    await page.goto(consoleUrl);
    const delivery = page.locator('.deliveries > li').filter({ hasText: 'user.created' });
    await delivery.getByText('Delivered').waitFor();
    await delivery.locator('summary').click();
  },
};

/** Signs up a user in the browser. The console (the emulator's page) then shows the webhook, and the email with the code. */
async function signUpUser(browser: Browser, { app, identityProvider }: Details): Promise<void> {
  const context = await browser.newContext({ baseURL: app });
  const mailbox = await context.newPage();
  await mailbox.goto(identityProvider.consoleUrl);
  await signUp(await context.newPage(), EMAIL, () => codeOnConsole(mailbox, EMAIL));
  await context.close();
}

async function takeScreenshots(browser: Browser, { app, identityProvider }: Details): Promise<void> {
  const page = await browser.newPage({
    baseURL: app,
    reducedMotion: 'reduce',
    colorScheme: 'light',
    viewport: { width: WIDTH, height: 760 },
  });
  for (const [name, open] of Object.entries(pages)) {
    await open(page, identityProvider.consoleUrl);
    await page.mouse.move(0, 0);
    await page.evaluate(() => {
      scrollTo(0, 0);
      return Promise.all(document.getAnimations().map(({ finished }) => finished));
    });
    const height = await page.evaluate(() => document.documentElement.scrollHeight);
    const clip = { x: 0, y: 0, width: WIDTH, height: Math.min(height, MAX_HEIGHT) };
    const file = path.join(OUTPUT, `${name}.png`);
    await page.screenshot({ path: file, fullPage: true, clip });
    console.log(file);
  }
}

// Playwright's own signal handlers would end this process before the stack has stopped.
const browser = await chromium.launch({
  ...(await chromiumOptions()),
  handleSIGINT: false,
  handleSIGTERM: false,
});
const stack = createLocalStack();
let stopped: Promise<unknown> | undefined;
const stop = () => {
  stopped ??= Promise.all([browser.close(), stack.remove()]);
  return stopped;
};
const interrupt = () => {
  process.exitCode = 130;
  void stop();
};
process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
try {
  const { details } = await stack.start('preview');
  await signUpUser(browser, details);
  await takeScreenshots(browser, details);
} catch (error) {
  if (!stopped) throw error;
} finally {
  await stop();
}
