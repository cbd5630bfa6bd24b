import type { Page } from 'playwright';
import { axeViolations } from '../harness/browser/browser';
import { expect, test } from '../harness/browser/test';

/** Error that React logs when a connection closes early. The production build logs a number, and `next dev` logs a text. */
const CONNECTION_CLOSED = /Minified React error #412|Connection closed/;

/** Requests of the client-side router of Next.js. */
const ROUTER_REQUEST = /[?&]_rsc=/;

/** Truncates each later response to the client-side router. The response then ends before the first occurrence of `text`. */
async function truncateResponses(page: Page, text: string): Promise<void> {
  await page.unroute(ROUTER_REQUEST);
  await page.route(ROUTER_REQUEST, async (route) => {
    const response = await route.fetch();
    const [beginning] = (await response.text()).split(text, 1);
    await route.fulfill({ response, body: beginning ?? '' });
  });
}

// A request of the router may still be in flight at the end of a test.
test.afterEach(({ page }) => page.unrouteAll({ behavior: 'ignoreErrors' }));

/** Opens the home page by a link. The response for this page is truncated, so the browser shows an error. */
async function failToOpenHome(page: Page): Promise<void> {
  await page.goto('/docs');
  await truncateResponses(page, 'One user');
  await page.getByRole('link', { name: 'Identity link' }).click();
  await page.getByRole('heading', { name: 'This page could not be shown.' }).waitFor();
}

test('If the response for a page is truncated, the browser shows an error and a button that loads the page again', async ({
  page,
  expectedErrors,
}) => {
  expectedErrors.push(CONNECTION_CLOSED);
  await failToOpenHome(page);
  await page.getByRole('alert').getByText('it is safe to try again').waitFor();
  expect(await axeViolations(page)).toEqual([]);

  await page.unroute(ROUTER_REQUEST);
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('heading', { name: 'One user' }).waitFor();
  expect(new URL(page.url()).pathname).toBe('/');
});

test('If the response for the header is truncated, the browser shows an error page with a link to the home page', async ({
  page,
  expectedErrors,
}) => {
  expectedErrors.push(CONNECTION_CLOSED);
  await failToOpenHome(page);
  await truncateResponses(page, '"aria-label":"Main"');
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('heading', { name: 'The site could not be shown.' }).waitFor();
  await page.getByText('it is safe to try again').waitFor();
  expect(await page.title()).toBe('Something failed · Identity link');
  expect(await axeViolations(page)).toEqual([]);

  // Uses the keyboard, because the error overlay of `next dev` covers the page.
  await page.getByRole('link', { name: 'Load the home page' }).press('Enter');
  await page.getByRole('link', { name: 'Create an account' }).waitFor();
});
