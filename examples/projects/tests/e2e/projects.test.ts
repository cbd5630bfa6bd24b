import type { Page } from 'playwright';
import { axeViolations, signInNewUser } from '../harness/browser/browser';
import { expect, test } from '../harness/browser/test';
import { tokenFor } from '../harness/requests';

// The service uses the superuser, as on the local stack. No policy applies to it, only the conditions of the statements.

async function createProject(page: Page, name: string): Promise<void> {
  await page.getByLabel('Name').fill(name);
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('heading', { name }).waitFor();
}

/** Renames the project of the page, and tries to add an unknown user. */
async function changeProject(page: Page): Promise<void> {
  await page.getByLabel('New name').fill('Artemis');
  await page.getByRole('button', { name: 'Rename' }).click();
  await page.getByRole('heading', { name: 'Artemis' }).waitFor();
  await page.getByLabel('User id').fill('user_unknown');
  await page.getByRole('button', { name: 'Add' }).click();
  await page.getByText('No such user').waitFor();
}

/** Opens the switcher of organizations and returns its menu. */
async function openSwitcher(page: Page) {
  await page.getByRole('button', { name: 'Open organization switcher' }).click();
  return page.getByRole('dialog');
}

/** Creates an organization with the switcher, and waits until the page can create its projects. */
async function createOrganization(page: Page, name: string): Promise<void> {
  await (await openSwitcher(page)).getByText('Create organization').click();
  const form = page.getByRole('dialog').filter({ has: page.getByRole('heading') });
  await form.getByLabel('Name').fill(name);
  await form.getByRole('button', { name: 'Create organization' }).click();
  await form.getByRole('button', { name: 'Skip' }).click();
  await page.getByRole('button', { name: 'Create', exact: true }).waitFor();
}

test('A user creates two organizations, and sees only the projects of the active one', async ({
  page,
  service,
  expectedErrors,
}) => {
  expectedErrors.push(/status of 404 .*\/projects\//);
  await signInNewUser(page, service, 'ada@example.com', '/projects');
  await page.getByText('Choose an organization').waitFor();
  await createOrganization(page, 'Acme');
  await createProject(page, 'Apollo');
  // The label of the provider's button differs from its text.
  const isOwn = (violation: string) => !violation.includes('cl-organizationSwitcherTrigger');
  expect((await axeViolations(page)).filter(isOwn)).toEqual([]);
  await changeProject(page);
  const address = page.url();

  await createOrganization(page, 'Umbrella');
  await createProject(page, 'Gemini');
  await page.goto('/projects');
  await page.getByRole('link', { name: 'Gemini' }).waitFor();
  expect(await page.getByRole('link', { name: 'Artemis' }).count()).toBe(0);
  expect((await page.goto(address))?.status()).toBe(404);

  await page.goto('/projects');
  await (await openSwitcher(page)).getByText('Acme').click();
  await page.getByRole('link', { name: 'Artemis' }).click();
  await page.waitForURL(address);
});

test.describe('Without JavaScript', () => {
  test.use({ javaScriptEnabled: false });
  test('An owner creates and renames a project, and gets a message for an unknown user id', async ({
    page,
    service,
    context,
  }) => {
    const cookies = {
      __session: tokenFor(service.idp, 'user_ada', { o: { id: 'org_acme', rol: 'member' } }),
      __client_uat: '1',
      __clerk_db_jwt: 'x',
    };
    await context.addCookies(
      Object.entries(cookies).map(([name, value]) => ({ name, value, url: service.url })),
    );
    await page.goto('/projects');
    await createProject(page, 'Apollo');
    await changeProject(page);
  });
});
