import type { Page } from 'playwright';
import { axeViolations, expiredSessionCookies, shownLink, signInNewUser } from '../harness/browser/browser';
import { CONSOLE_URL, expect, test } from '../harness/browser/test';

/** Each page that needs no session, with a function that waits until the page is complete. */
const SIGNED_OUT_PAGES = [
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

for (const [path, complete] of SIGNED_OUT_PAGES) {
  test(`The page ${path} has no axe violations, no layout shifts at a width of 1280 px and no horizontal scrolling at 360 px, and loads the browser SDK only for a form`, async ({
    page,
    expectedErrors,
  }) => {
    expectedErrors.push(/status of 404 .*\/no-such-page/);
    const scripts: string[] = [];
    page.on('request', (request) => void (request.url().includes('@clerk') && scripts.push(request.url())));
    await recordLayoutShifts(page);
    await page.goto(path);
    await complete(page);
    expect(await readLayoutShifts(page)).toEqual([]);
    expect(await findProblems(page)).toEqual(NONE);
    expect(scripts.length > 0, scripts.join()).toBe(path.startsWith('/sign-'));
  });
}

test('For a signed-in user, / and /account have no axe violations, no layout shifts at a width of 1280 px and no horizontal scrolling at 360 px', async ({
  page,
  service,
}) => {
  await recordLayoutShifts(page);
  await signInNewUser(page, service, 'pages@example.com');
  await shownLink(page);
  await page.getByRole('button', { name: 'Open user menu' }).waitFor();
  expect(await readLayoutShifts(page)).toEqual([]);
  await page.getByRole('button', { name: 'Send POST' }).click();
  await page.getByRole('region', { name: 'Response' }).waitFor();
  expect(await findProblems(page)).toEqual(NONE);
  await page.goto('/');
  await page.getByRole('link', { name: 'Open your account' }).waitFor();
  expect(await findProblems(page)).toEqual(NONE);
});

const READY = {
  '/sign-in': 'Email address',
  '/sign-up': 'Email address',
  '/account': 'Identity-provider user id to register',
};
for (const [path, label] of Object.entries(READY)) {
  test(`The page ${path} is hydrated without an error if its own script arrives after the browser SDK`, async ({
    page,
    service,
  }) => {
    if (path === '/account') await signInNewUser(page, service, 'late@example.com', '/docs');
    const held: string[] = [];
    await page.route('**/_next/static/chunks/**.js', async (route) => {
      const response = await route.fetch();
      if (/Loading the form…|Call the API/.test(await response.text())) {
        held.push(route.request().url());
        await expect.poll(() => page.evaluate('window.Clerk?.loaded')).toBe(true);
      }
      await route.fulfill({ response });
    });
    await page.goto(path);
    await page.getByLabel(label).fill('x');
    expect(held).not.toEqual([]);
  });
}

test('Until the form of the sign-in page is complete, a placeholder is in its place, so that there is always one heading', async ({
  page,
}) => {
  await page.addInitScript(() => {
    const counts = new Set<number>();
    Object.assign(window, { counts });
    const count = () => {
      const shown = [...document.querySelectorAll('main h1')].filter((each) => each.checkVisibility());
      if (document.querySelector('footer')) counts.add(shown.length);
      requestAnimationFrame(count);
    };
    count();
  });
  // Frames pass before each script, as on a slow line.
  await page.route('**/npm/@clerk/**', async (route) => {
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 300)));
    await route.continue();
  });
  await page.goto('/sign-in');
  await page.getByLabel('Email address').waitFor();
  expect(await page.evaluate('[...window.counts]')).toEqual([1]);
});

test('The home page links a user whose session token has expired to the account page, not to the sign-in page', async ({
  page,
  service,
}) => {
  await signInNewUser(page, service, 'home@example.com', '/');
  await page.context().addCookies(await expiredSessionCookies(page, service));
  const visited: string[] = [];
  page.on('request', (request) => visited.push(new URL(request.url()).pathname));
  await page.getByRole('link', { name: 'Open your account' }).click();
  await shownLink(page);
  expect(visited).not.toContain('/sign-in');
});

test('In a page that runs from right to left, an id stays in the order of its characters', async ({
  page,
}) => {
  await page.goto('/');
  const [first = 0, last = 0] = await page.getByText('user_2x9Fq…').evaluate(({ firstChild }) => {
    document.documentElement.dir = 'rtl';
    const range = document.createRange();
    return [0, 9].map((at) => {
      if (firstChild) range.setStart(firstChild, at);
      if (firstChild) range.setEnd(firstChild, at + 1);
      return range.getBoundingClientRect().x;
    });
  });
  expect(last).toBeGreaterThan(first);
});

test.describe('Without JavaScript', () => {
  test.use({ javaScriptEnabled: false });
  test('Without JavaScript, the sign-in page says only that the form needs it', async ({ page }) => {
    await page.goto('/sign-in');
    expect((await page.locator('main .card').innerText()).split(/\n+/)).toEqual([
      'Sign in',
      'The form needs JavaScript.',
    ]);
  });
});

test('The header links to the API page and, on the local stack, to the console', async ({ page }) => {
  await page.goto('/');
  const navigation = page.getByRole('navigation', { name: 'Main' });
  expect(await navigation.getByRole('link', { name: 'Console' }).getAttribute('href')).toBe(CONSOLE_URL);
  await navigation.getByRole('link', { name: 'API' }).click();
  await page.getByRole('heading', { name: 'The API' }).waitFor();
});

test('The skip link of a page moves the keyboard focus to the main content', async ({ page }) => {
  await page.goto('/');
  await page.keyboard.press('Tab');
  const skip = page.getByRole('link', { name: 'Skip to content' });
  expect(await skip.evaluate((link) => link === document.activeElement)).toBe(true);
  await page.keyboard.press('Enter');
  expect(await page.evaluate(() => document.activeElement?.id)).toBe('main');
});

test('If the browser SDK does not load, the sign-in page first reports that the form is still loading and then shows an error', async ({
  page,
  expectedErrors,
}) => {
  expectedErrors.push(/ERR_FAILED .*clerk-js/, /failed_to_load_clerk/);
  await page.clock.install();
  await page.route('**/npm/@clerk/clerk-js*/**', (route) => route.abort());
  await page.goto('/sign-in');
  await page.getByText('Loading the form…').waitFor();
  await page.clock.runFor(7_000);
  await page.getByText('Still loading').waitFor();
  await page.clock.runFor(60_000);
  await page.getByRole('heading', { name: 'The form could not be loaded' }).waitFor();
  expect(await axeViolations(page)).toEqual([]);
});
