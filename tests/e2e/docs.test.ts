import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Page } from 'playwright';
import { openApiDocument, operations } from '#lib/api/document';
import { expect, test } from '../harness/browser/test';
import { tokenFor } from '../harness/requests';

// pages.test.ts checks the page with axe.

const open = async (page: Page) => {
  await page.goto('/docs');
  await page.getByRole('heading', { name: 'The API' }).waitFor();
};

/** Returns the descriptions, summaries, error messages and paths in a part of the OpenAPI document. */
function textsIn(part: unknown, key = ''): string[] {
  if (typeof part === 'string') return ['description', 'summary', 'message'].includes(key) ? [part] : [];
  if (typeof part !== 'object' || part === null) return [];
  const paths = Object.keys(part).filter((name) => name.startsWith('/'));
  return [...paths, ...Object.entries(part).flatMap(([name, value]) => textsIn(value, name))];
}

test('The docs page shows the paths, statuses and texts of the OpenAPI document, and has no dead anchor links', async ({
  page,
}) => {
  await open(page);
  const plain = (text: string) => text.replaceAll('`', '').replaceAll(/\s+/g, ' ');
  const shown = plain(await page.locator('main').innerText());
  const { servers, ...rest } = openApiDocument;
  const texts = textsIn(rest).flatMap((text) => text.split('\n\n').map(plain));
  expect(texts.length).toBeGreaterThan(50);
  expect(texts.filter((text) => !shown.includes(text))).toEqual([]);
  const dead = await page
    .locator('a[href^="#"]')
    .evaluateAll((links) =>
      links.filter((link) => !document.querySelector(link.getAttribute('href') ?? '')).map(String),
    );
  expect(dead).toEqual([]);
});

test('Each command that is copied from the docs page succeeds', async ({ page, service, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await open(page);
  const commands = page.locator('article figure');
  expect(await commands.count()).toBe(operations.length);
  for (const figure of await commands.all()) {
    await figure.getByRole('button', { name: 'Copy' }).click();
    await figure.getByRole('button', { name: /^Copied/ }).waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    expect(copied).toBe(await figure.locator('pre').textContent());
    if (!copied.startsWith('curl')) continue;
    const env = { ...process.env, API: service.url, TOKEN: tokenFor(service.idp, 'user_reader') };
    const { stdout } = await promisify(execFile)('sh', ['-c', copied], { env });
    expect(stdout, copied).toMatch(/^HTTP\/1\.1 20[01] /);
  }
});
