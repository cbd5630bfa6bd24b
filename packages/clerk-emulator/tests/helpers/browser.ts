import path from 'node:path';
import { type BrowserContext, chromium, type LaunchOptions, type Page } from 'playwright';
import { afterAll, expect, onTestFinished } from 'vitest';
import type { Emulator } from '../../src/emulator';
import { CHROMIUM_FOLDER, isChromiumPackaged } from './folders';

export const PASSWORD = 'correct horse battery';

export const LAUNCH_OPTIONS: LaunchOptions = {
  args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'],
  ...(isChromiumPackaged && {
    executablePath: path.join(CHROMIUM_FOLDER, 'chromium'),
    env: {
      ...process.env,
      LD_LIBRARY_PATH: path.join(CHROMIUM_FOLDER, 'lib'),
      FONTCONFIG_PATH: CHROMIUM_FOLDER,
    },
  }),
};

/** Starts a browser. `newPage` opens a page in a new profile, or in the profile of another page. */
export async function startBrowser() {
  const browser = await chromium.launch(LAUNCH_OPTIONS);
  afterAll(() => browser.close());
  return async function newPage(baseURL: string, profile?: BrowserContext): Promise<Page> {
    const permissions = ['clipboard-read', 'clipboard-write'];
    const context = profile ?? (await browser.newContext({ baseURL, permissions, reducedMotion: 'reduce' }));
    context.setDefaultTimeout(20_000);
    const page = await context.newPage();
    const problems: string[] = [];
    page.on('pageerror', ({ message }) => problems.push(message));
    page.on('request', (request) => {
      const { protocol, hostname } = new URL(request.url());
      if (/^http/.test(protocol) && !/^(localhost|127\.0\.0\.1)$/.test(hostname))
        problems.push(request.url());
    });
    onTestFinished(async () => {
      await context.close();
      expect(problems, 'errors, and requests to other machines').toEqual([]);
    });
    return page;
  };
}

/** Presses Enter instead of clicking, because the form moves when a field loses the focus. */
export const submit = (page: Page) => page.locator('.cl-formButtonPrimary').press('Enter');

/** Signs in through the form of the portal. */
export async function signIn(page: Page, identifier: string, password = PASSWORD): Promise<void> {
  await page.fill('input[name=identifier]', identifier);
  await submit(page);
  await page.fill('input[name=password]', password);
  await submit(page);
}

/** Types the code of the last mail to an address into the form. */
export async function typeMailedCode(page: Page, { store }: Emulator, email: string): Promise<void> {
  const field = page.locator('input[autocomplete="one-time-code"]').first();
  await field.waitFor();
  const code = () => store.mails.all().findLast(({ to }) => to === email)?.code;
  await expect.poll(code).toBeDefined();
  await field.focus();
  await page.keyboard.type(code() ?? '');
}
