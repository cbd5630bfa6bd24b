import type { Page } from 'playwright';
import { expect, test } from 'vitest';
import { axeViolations, PASSWORD, shownLink, signInWithoutForm, visit } from '../../harness/browser/browser';
import { launchBrowser } from '../../harness/browser/chromium';
import { startTestService } from '../../harness/service';
import { stopAfterAll } from '../../vitest/stop-after-all';

// Address of the console, which is the web page of the Clerk emulator. With this variable, the pages of the service also show
// instructions for the local stack, which is the service with its dependencies on one machine (`npm run dev`).
const environment = { IDP_CONSOLE_URL: 'http://127.0.0.1:3900' };
const service = stopAfterAll(await startTestService({ environment }));
const browser = stopAfterAll(await launchBrowser());
service.idp.createUser({ email: 'pages@example.com', password: PASSWORD });

/** Error that the browser logs for /no-such-page, which gets a 404. */
const NO_PAGE = /status of 404 .*\/no-such-page/;

/** Each page that needs no session, with a function that waits until the page is complete. */
const signedOutPages = [
  ['/', (page: Page) => page.getByRole('link', { name: 'Create an account' }).waitFor()],
  ['/docs', (page: Page) => page.getByRole('heading', { name: 'The API' }).waitFor()],
  ['/sign-in', (page: Page) => page.getByLabel('Email address').waitFor()],
  ['/sign-up', (page: Page) => page.getByLabel('Email address').waitFor()],
  ['/no-such-page', (page: Page) => page.getByRole('heading', { name: 'There is no page here.' }).waitFor()],
] as const;

const WIDE = { width: 1280, height: 900 };
const NARROW = { width: 360, height: 740 };

/** Records the layout shifts of all documents that the tab loads later. */
const recordLayoutShifts = (page: Page) =>
  page.addInitScript(() => {
    const shifts: string[] = [];
    Object.assign(window, { shifts });
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) shifts.push(JSON.stringify(entry));
    }).observe({ type: 'layout-shift', buffered: true });
  });
const readLayoutShifts = (page: Page) => page.evaluate('window.shifts');

/** Checks accessibility with axe in light and dark mode, and whether the page scrolls sideways on a small screen. */
async function findProblems(page: Page) {
  const violations = await axeViolations(page);
  await page.setViewportSize(NARROW);
  await page.waitForFunction((width) => window.innerWidth === width, NARROW.width);
  const scrollsSideways = await page.evaluate(
    () => document.documentElement.scrollWidth > document.documentElement.clientWidth,
  );
  await page.setViewportSize(WIDE);
  return { violations, scrollsSideways };
}

const NONE = { violations: [], scrollsSideways: false };

test('The pages have no axe violations, no layout shifts at a width of 1280 px and no horizontal scrolling at 360 px', () =>
  visit(browser, service, { viewport: WIDE, expected: [NO_PAGE] }, async (page) => {
    await recordLayoutShifts(page);
    for (const [path, complete] of signedOutPages) {
      await page.goto(path);
      await complete(page);
      expect(await readLayoutShifts(page), path).toEqual([]);
      expect(await findProblems(page), path).toEqual(NONE);
    }
    await signInWithoutForm(page, 'pages@example.com');
    await shownLink(page);
    await page.getByRole('button', { name: 'Open user menu' }).waitFor();
    expect(await readLayoutShifts(page), '/account').toEqual([]);
    await page.getByRole('button', { name: 'Send POST' }).click();
    await page.getByRole('region', { name: 'Response' }).waitFor();
    expect(await findProblems(page), '/account').toEqual(NONE);
    await page.goto('/');
    await page.getByRole('link', { name: 'Open your account' }).waitFor();
    expect(await findProblems(page), '/ signed in').toEqual(NONE);
  }));

test('The header links to the API page and, on the local stack, to the console', () =>
  visit(browser, service, {}, async (page) => {
    await page.goto('/');
    const navigation = page.getByRole('navigation', { name: 'Main' });
    expect(await navigation.getByRole('link', { name: 'Console' }).getAttribute('href')).toBe(
      environment.IDP_CONSOLE_URL,
    );
    await navigation.getByRole('link', { name: 'API' }).click();
    await page.getByRole('heading', { name: 'The API' }).waitFor();
  }));

test('On the local stack, the sign-up page says that no mail is sent, and links to the console when the form requires a verification code', () =>
  visit(browser, service, {}, async (page) => {
    const banner = page.getByRole('complementary', { name: 'Local stack' });
    await page.goto('/sign-up');
    await banner.getByText('It does not send mail.').waitFor();
    await page.getByLabel('Email address').fill('banner@example.com');
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await page.getByRole('button', { name: 'Continue' }).press('Enter');
    await banner.getByText('Your code is on the console.').waitFor();
    expect(await banner.getByRole('link', { name: 'Open the console' }).getAttribute('href')).toBe(
      environment.IDP_CONSOLE_URL,
    );
    expect(await axeViolations(page)).toEqual([]);
  }));

test('The skip link of a page moves the keyboard focus to the main content', () =>
  visit(browser, service, {}, async (page) => {
    await page.goto('/');
    await page.keyboard.press('Tab');
    const skip = page.getByRole('link', { name: 'Skip to content' });
    expect(await skip.evaluate((link) => link === document.activeElement)).toBe(true);
    await page.keyboard.press('Enter');
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('main');
  }));

test('If the browser SDK does not load, the sign-in page first reports that the form is still loading and then shows an error', () =>
  visit(browser, service, { expected: [/ERR_FAILED .*clerk-js/, /failed_to_load_clerk/] }, async (page) => {
    await page.clock.install();
    await page.route('**/npm/@clerk/clerk-js*/**', (route) => route.abort());
    await page.goto('/sign-in');
    await page.getByText('Loading the form…').waitFor();
    await page.clock.runFor(7_000);
    await page.getByText('Still loading').waitFor();
    await page.clock.runFor(60_000);
    await page.getByRole('heading', { name: 'The form could not be loaded' }).waitFor();
    expect(await axeViolations(page)).toEqual([]);
  }));
