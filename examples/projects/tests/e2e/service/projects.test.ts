import { expect, test } from 'vitest';
import { axeViolations, PASSWORD, signInWithoutForm, visit } from '../../harness/browser/browser';
import { launchBrowser } from '../../harness/browser/chromium';
import { startProjectsService } from '../../harness/projects';
import { stopAfterAll } from '../../vitest/stop-after-all';

const service = stopAfterAll(await startProjectsService());
const browser = stopAfterAll(await launchBrowser());

test('An owner creates a project, renames it, gets a message for an unknown user id and adds a colleague by identity-provider id', () =>
  visit(browser, service, {}, async (page) => {
    const colleague = service.idp.createUser({ email: 'bob@example.com', password: PASSWORD });
    await expect.poll(() => service.database.rowsOf(colleague.id)).toHaveLength(1);
    const [row] = await service.database.rowsOf(colleague.id);
    service.idp.createUser({ email: 'ada@example.com', password: PASSWORD });
    await signInWithoutForm(page, 'ada@example.com', '/projects');
    await page.getByLabel('Name').fill('Apollo');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { name: 'Apollo' }).waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await page.getByLabel('New name').fill('Artemis');
    await page.getByRole('button', { name: 'Rename' }).click();
    await page.getByRole('heading', { name: 'Artemis' }).waitFor();
    await page.getByLabel('User id').fill('user_unknown');
    await page.getByRole('button', { name: 'Add' }).click();
    await page.getByText('No such user').waitFor();
    await page.getByLabel('User id').fill(colleague.id);
    await page.getByRole('button', { name: 'Add' }).click();
    await page.getByText(`${row?.id} (member)`).waitFor();
    await page.goto('/projects');
    await page.getByRole('link', { name: 'Artemis' }).waitFor();
  }));

test('In a browser without JavaScript, an invalid project name shows a message, and a valid name creates the project', () =>
  visit(browser, service, { javaScriptEnabled: false }, async (page) => {
    service.idp.createUser({ email: 'carol@example.com', password: PASSWORD });
    await signInWithoutForm(page, 'carol@example.com', '/projects');
    await page.getByLabel('Name').fill('x'.repeat(101));
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText('name must have at most 100 characters').waitFor();
    await page.getByLabel('Name').fill('Without scripts');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { name: 'Without scripts' }).waitFor();
    expect(page.url()).toMatch(/\/projects\/[\da-f-]{36}$/);
  }));

test('During a database outage, the projects page shows an error with the button "Try again", which loads the page after the outage', () =>
  visit(browser, service, { expected: [/status of 500/, /React error #441/] }, async (page) => {
    service.idp.createUser({ email: 'outage@example.com', password: PASSWORD });
    await signInWithoutForm(page, 'outage@example.com', '/projects');
    // Waits until the browser SDK has loaded. If the browser leaves the page earlier, the SDK may report a signed-out user on
    // the next page.
    await page.getByRole('button', { name: 'Open user menu' }).waitFor();
    await service.database.proxy.treat('refuse');
    try {
      await page.goto('/projects');
      await page.getByRole('heading', { name: 'This page could not be shown.' }).waitFor();
    } finally {
      await service.database.proxy.treat('forward');
    }
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('button', { name: 'Create' }).waitFor();
  }));
