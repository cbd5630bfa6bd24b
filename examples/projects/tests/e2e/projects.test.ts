import { axeViolations, signInNewUser } from '../harness/browser/browser';
import { expect, test } from '../harness/browser/test';
import { projectsOptions } from '../harness/projects';

test.use({ serviceOptions: projectsOptions });

for (const javaScriptEnabled of [true, false]) {
  test.describe(`JavaScript: ${javaScriptEnabled}`, () => {
    test.use({ javaScriptEnabled });
    test('An owner creates and renames a project, and gets a message for an unknown user id', async ({
      page,
      service,
    }) => {
      await signInNewUser(page, service, `ada_${javaScriptEnabled}@example.com`, '/projects');
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
    });
  });
}
