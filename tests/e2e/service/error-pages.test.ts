import type { Page } from 'playwright';
import { expect, test } from 'vitest';
import { axeViolations, PASSWORD, signInWithoutForm, visit } from '../../harness/browser/browser';
import { launchBrowser } from '../../harness/browser/chromium';
import { startTestService } from '../../harness/service';
import { stopAfterAll } from '../../vitest/stop-after-all';

const service = stopAfterAll(await startTestService());
const browser = stopAfterAll(await launchBrowser());
service.idp.createUser({ email: 'errors@example.com', password: PASSWORD });

/** What React logs of a connection that closed too early: 412 in the production build, in words under `next dev`. */
const CONNECTION_CLOSED = /Minified React error #412|Connection closed/;

/** What the client's router fetches, unlike what the browser does by itself. */
const ROUTER_REQUEST = /[?&]_rsc=/;

/** From now on every answer to the client's router breaks off before the given words. */
async function breakOffBefore(page: Page, words: string): Promise<void> {
  await page.unroute(ROUTER_REQUEST);
  await page.route(ROUTER_REQUEST, async (route) => {
    const response = await route.fetch();
    const [beginning] = (await response.text()).split(words, 1);
    await route.fulfill({ response, body: beginning ?? '' });
  });
}

async function failToOpenAccount(page: Page): Promise<void> {
  await signInWithoutForm(page, 'errors@example.com', '/');
  await breakOffBefore(page, 'Your account');
  await page.getByRole('link', { name: 'Open your account' }).click();
  await page.getByRole('heading', { name: 'This page could not be shown.' }).waitFor();
}

test('a page whose answer breaks off says so, and is asked for anew by its button', () =>
  visit(browser, service, { expected: [CONNECTION_CLOSED] }, async (page) => {
    await failToOpenAccount(page);
    await page.getByRole('alert').getByText('it is safe to try again').waitFor();
    expect(await axeViolations(page)).toEqual([]);

    await page.unroute(ROUTER_REQUEST);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'Your account' }).waitFor();
    expect(new URL(page.url()).pathname).toBe('/account');
  }));

test('when the frame of all pages breaks off, what is left says so and leads to the start page', () =>
  visit(browser, service, { expected: [CONNECTION_CLOSED] }, async (page) => {
    await failToOpenAccount(page);
    await breakOffBefore(page, 'Skip to content');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'The site could not be shown.' }).waitFor();
    await page.getByText('it is safe to try again').waitFor();
    expect(await page.title()).toBe('Something failed · Identity link');
    expect(await axeViolations(page)).toEqual([]);

    // By keyboard, as `next dev` lays a window of its own over the page.
    await page.getByRole('link', { name: 'Load the home page' }).press('Enter');
    await page.getByRole('link', { name: 'Open your account' }).waitFor();
  }));
