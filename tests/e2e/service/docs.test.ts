import { execFile } from 'node:child_process';
import http from 'node:http';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import type { Page } from 'playwright';
import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { visit } from '../../harness/browser/browser';
import { launchBrowser } from '../../harness/browser/chromium';
import { SIGNING_SECRET } from '../../harness/keys';
import { send, tokenFor } from '../../harness/requests';
import { startTestService } from '../../harness/service';
import { stopAfterAll } from '../../vitest/stop-after-all';

const service = stopAfterAll(await startTestService());
const browser = stopAfterAll(await launchBrowser());

const Operations = z.record(z.string(), z.object({ responses: z.record(z.string(), z.unknown()) }));
const Document = z.looseObject({
  paths: z.record(z.string(), Operations),
  webhooks: z.record(z.string(), Operations),
  components: z.looseObject({ headers: z.record(z.string(), z.unknown()) }),
});

/** The OpenAPI document that the service serves. */
let document: z.infer<typeof Document>;
/** Returns the anchor of an operation on the docs page. For `POST /auth/v1/register`, it is `post-auth-v1-register`. */
const anchorFor = (title: string) =>
  title
    .toLowerCase()
    .match(/[a-z0-9]+/g)
    ?.join('-') ?? '';

beforeAll(async () => {
  document = Document.parse((await send(`${service.url}/openapi.json`)).body);
});

/** Returns the anchor and the response statuses of each operation. */
const listOperations = () =>
  [...Object.entries(document.paths), ...Object.entries(document.webhooks)].flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { responses }]) => ({
      id: anchorFor(path.startsWith('/') ? `${method} ${path}` : `webhook ${path}`),
      isWebhook: !path.startsWith('/'),
      statuses: Object.keys(responses),
    })),
  );

const open = async (page: Page, path = '/docs') => {
  await page.goto(path);
  await page.getByRole('heading', { name: 'The API' }).waitFor();
};

test('The docs page has one anchor for each operation, lists the responses of each operation, and has no dead anchor links', () =>
  visit(browser, service, {}, async (page) => {
    await open(page);
    const found = await page
      .locator('main :is(h2, h3, h4, h5)[id]')
      .evaluateAll((headings) => headings.map(({ id, textContent }) => `${id} ${textContent}`));
    expect(listOperations().length).toBeGreaterThan(5);
    for (const { id, statuses } of listOperations()) {
      expect(found.filter((heading) => heading.startsWith(`${id} `))).toHaveLength(1);
      const shown = await page
        .locator(`article[aria-labelledby="${id}"] :is(h4, p) a:has([data-status])`)
        .evaluateAll((links) => links.map((link) => link.querySelector('b')?.textContent));
      expect(shown.toSorted()).toEqual(statuses.toSorted());
    }
    const responses = found.map((heading) => heading.replace(/^\S+ /, '')).filter((name) => /^\d/.test(name));
    const repeated = ['408', '413', '417', '431'].map((status) =>
      responses.filter((name) => name.startsWith(status)),
    );
    expect(
      repeated.map(({ length }) => length),
      'shared responses are described once',
    ).toEqual([1, 1, 1, 1]);
    const ids = await page.locator('[id]').evaluateAll((elements) => elements.map(({ id }) => id));
    expect(new Set(ids).size).toBe(ids.length);
    const links = await page
      .locator('a[href^="#"]')
      .evaluateAll((all) => all.map((link) => link.getAttribute('href')));
    expect(links.filter((link) => !ids.includes(link?.slice(1) ?? ''))).toEqual([]);
  }));

/** Returns the summaries, descriptions, patterns, constants, enum values and field names in a part of the OpenAPI document. */
function collectTexts(part: unknown, key = ''): string[] {
  if (Array.isArray(part)) return part.flatMap((each) => collectTexts(each, key));
  if (typeof part !== 'object' || part === null) {
    return ['summary', 'description', 'pattern', 'enum', 'const'].includes(key) ? [String(part)] : [];
  }
  const fields = key === 'properties' || key === 'headers' ? Object.keys(part) : [];
  return [...fields, ...Object.entries(part).flatMap(([name, value]) => collectTexts(value, name))];
}

test('The docs page contains all descriptions, constants and field names of the OpenAPI document', () =>
  visit(browser, service, {}, async (page) => {
    await open(page);
    const plain = (text: string) => text.replaceAll('`', '').replace(/\s+/g, ' ').trim();
    const shown = plain((await page.locator('main').innerText()).replaceAll('`', ''));
    const { info, tags, paths, webhooks, components, 'x-elsewhere': elsewhere } = document;
    // A key of `components.headers`, such as `RequestId`, is only used in references, so the page does not show it. The page
    // shows each of these headers under its HTTP name, such as `x-request-id`.
    const { headers, ...named } = components;
    const shared = Object.values(headers).map((header) => ({ header }));
    const texts = collectTexts({ info, tags, paths, webhooks, named, shared, elsewhere });
    expect(texts.length).toBeGreaterThan(100);
    const parts = texts.flatMap((each) => each.split('\n\n')).map(plain);
    expect(parts.filter((each) => !shown.includes(each))).toEqual([]);
    expect(shown).toContain('1 to 255 characters');
  }));

/** Runs a command in a shell with the variables that the commands of the docs page use. Returns the output. */
async function runInShell(command: string): Promise<string> {
  const { stdout } = await promisify(execFile)('sh', ['-c', command], {
    env: {
      ...process.env,
      API: service.url,
      TOKEN: tokenFor(service.idp, 'user_reader'),
      WEBHOOK_SECRET: SIGNING_SECRET,
    },
    timeout: 60_000,
  });
  return stdout;
}

test('Each command that is copied from the docs page gets a success response that the OpenAPI document describes', () =>
  visit(browser, service, { permissions: ['clipboard-read', 'clipboard-write'] }, async (page) => {
    await open(page);
    for (const { id, isWebhook, statuses } of listOperations()) {
      const command = page.locator(`article[aria-labelledby="${id}"] figure code`);
      if (isWebhook) {
        expect(await command.count()).toBe(0);
        continue;
      }
      const figure = page.locator(`article[aria-labelledby="${id}"] figure`);
      await figure.getByRole('button', { name: 'Copy' }).click();
      await figure.getByRole('button', { name: /^Copied/ }).waitFor();
      const copied = await page.evaluate(() => navigator.clipboard.readText());
      expect(copied).toBe(await command.textContent());
      const [, status = ''] = /^HTTP\/1\.1 (\d+) /.exec(await runInShell(copied)) ?? [];
      expect(status, copied).toMatch(/^20[01]$/);
      expect(statuses).toContain(status);
    }
    // The commands of `/auth/v1/register` and `/webhooks/idp/v1/user-created` register the same user, so exactly one row
    // exists.
    expect(await service.database.rowsOf('user_2abcDEFghiJKLmnoPQRstuVWXyz')).toHaveLength(1);
  }));

test('The HTML of the docs page contains every command and does not depend on the Host header', async () => {
  const mainOf = async (headers: Record<string, string>) => {
    const request = http.get(`${service.url}/docs`, { headers });
    const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
      request.once('response', resolve).once('error', reject);
    });
    return /<main[\s\S]*<\/main>/.exec(await text(response))?.[0] ?? '';
  };
  const main = await mainOf({});
  for (const path of Object.keys(document.paths)) expect(main).toContain(`curl -i &quot;$API${path}&quot;`);
  expect(await mainOf({ host: 'api.example.com', 'x-forwarded-proto': 'https' })).toBe(main);
  expect(await mainOf({ host: '$(id)' })).toBe(main);
});

test('The docs page loads only one script that the home page does not load: the script of the copy buttons', () =>
  visit(browser, service, {}, async (page) => {
    /** Returns the address of each script of a page, or the first 18 characters of an inline script. */
    const scripts = async (path: string) => {
      const response = await page.goto(path);
      const html = (await response?.text()) ?? '';
      return [...html.matchAll(/<script\b([^>]*)>([^<]{0,18})/g)].map(
        ([, attributes = '', beginning]) => /src="([^"?]+)/.exec(attributes)?.[1] ?? beginning,
      );
    };
    const home = await scripts('/');
    const docs = await scripts('/docs');
    expect(docs.length).toBeGreaterThan(3);
    const own = docs.filter((script) => !home.includes(script));
    expect(own).toHaveLength(1);
    expect(await (await page.request.get(own[0] ?? '')).text()).toContain('navigator.clipboard');
  }));

test('The table of contents of the docs page marks the section that is in view', () =>
  visit(browser, service, {}, async (page) => {
    await open(page);
    const marked = () =>
      page
        .locator('nav[aria-label="Contents"] a:target-current')
        .evaluateAll((links) => links.map((link) => link.getAttribute('href')));
    await expect.poll(marked).toEqual(['#first-call']);
    await page.getByRole('heading', { name: 'Register a user' }).evaluate((heading) => {
      heading.scrollIntoView({ behavior: 'instant' });
    });
    await expect.poll(marked).toEqual(['#post-auth-v1-register']);
  }));

test('The home page links to API operations on the docs page, and the footer of the sign-in page links to the docs page', () =>
  visit(browser, service, {}, async (page) => {
    await page.goto('/');
    await page.getByRole('link', { name: 'POST /auth/v1/register' }).click();
    await page.waitForURL('/docs#post-auth-v1-register');
    const heading = page.getByRole('heading', { name: 'Register a user' });
    await expect
      .poll(() =>
        heading.evaluate((element) => Math.abs(element.getBoundingClientRect().top) < innerHeight / 2),
      )
      .toBe(true);

    const { paths } = document;
    await page.goto('/');
    const hrefs = await page
      .locator('a[href^="/docs#"]')
      .evaluateAll((links) => links.map((link) => link.getAttribute('href')));
    const ids = listOperations().map(({ id }) => `/docs#${id}`);
    expect(Object.keys(paths).length).toBeGreaterThan(hrefs.length);
    expect(hrefs.filter((href) => !ids.includes(String(href)))).toEqual([]);

    await page.goto('/sign-in');
    await page.getByRole('contentinfo').getByRole('link', { name: 'API' }).click();
    await page.getByRole('heading', { name: 'The API' }).waitFor();
    await page.getByRole('link', { name: 'OpenAPI document' }).click();
    await page.waitForURL('/openapi.json');
  }));

test('A focused heading of the docs page shows a link symbol, and Enter opens the anchor of the heading', () =>
  visit(browser, service, {}, async (page) => {
    await open(page);
    const link = page.locator('#post-auth-v1-register-201 a');
    const symbolOpacity = () => link.evaluate((element) => getComputedStyle(element, '::after').opacity);
    expect(await symbolOpacity()).toBe('0');
    await page.locator('#post-auth-v1-register-200 a').focus();
    for (
      let tabs = 0;
      tabs < 10 && !(await link.evaluate((element) => element === globalThis.document.activeElement));
      tabs += 1
    ) {
      await page.keyboard.press('Tab');
    }
    expect(await symbolOpacity()).toBe('1');
    await page.keyboard.press('Enter');
    await page.waitForURL('/docs#post-auth-v1-register-201');
  }));

test('The docs page does not cut off content at a width of 360 pixels', () =>
  visit(browser, service, { viewport: { width: 360, height: 740 } }, async (page) => {
    await open(page);
    const cutOff = await page.locator('main *:not(.visually-hidden)').evaluateAll((elements) =>
      elements
        .filter((element) => {
          const { left, right } = element.getBoundingClientRect();
          return (
            left < 0 ||
            right > innerWidth ||
            element.scrollWidth > Math.max(element.clientWidth, right - left + 1)
          );
        })
        .map(({ outerHTML }) => outerHTML.slice(0, 120)),
    );
    expect(cutOff).toEqual([]);
  }));
