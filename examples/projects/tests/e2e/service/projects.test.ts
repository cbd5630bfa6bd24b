import { expect, test } from 'vitest';
import { axeViolations, PASSWORD, signInWithoutForm, visit } from '../../harness/browser/browser';
import { launchBrowser } from '../../harness/browser/chromium';
import { startProjectsService } from '../../harness/projects';
import { stopAfterAll } from '../../vitest/stop-after-all';

const service = stopAfterAll(await startProjectsService());
const browser = stopAfterAll(await launchBrowser());

test.each([true, false])(
  'An owner creates and renames a project, and gets a message for an unknown user id (JavaScript: %s)',
  (javaScriptEnabled) =>
    visit(browser, service, { javaScriptEnabled }, async (page) => {
      const email = `ada_${javaScriptEnabled}@example.com`;
      service.idp.createUser({ email, password: PASSWORD });
      await signInWithoutForm(page, email, '/projects');
      await page.getByLabel('Name').fill('Apollo');
      await page.getByRole('button', { name: 'Create' }).click();
      await page.getByRole('heading', { name: 'Apollo' }).waitFor();
      if (javaScriptEnabled) expect(await axeViolations(page)).toEqual([]);
      await page.getByLabel('New name').fill('Artemis');
      await page.getByRole('button', { name: 'Rename' }).click();
      await page.getByRole('heading', { name: 'Artemis' }).waitFor();
      await page.getByLabel('User id').fill('user_unknown');
      await page.getByRole('button', { name: 'Add' }).click();
      await page.getByText('No such user').waitFor();
    }),
);
