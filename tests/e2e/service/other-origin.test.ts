import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { buildCustomRoute } from 'next/dist/lib/build-custom-route';
import type { Header } from 'next/dist/lib/load-custom-routes';
import type { Page } from 'playwright';
import { afterAll, expect, test } from 'vitest';
import { z } from 'zod';
import { launchBrowser } from '../../harness/browser/chromium';
import { BUILD_FOLDER } from '../../harness/build';
import { startFetchServer } from '../../harness/dependencies/stub-server';
import { bearer, cookie, ME, send, tokenFor } from '../../harness/requests';
import { startServiceProcess, startTestService } from '../../harness/service';
import { stopAfterAll } from '../../vitest/stop-after-all';

const page = () =>
  new Response('<!doctype html><title>A frontend</title>', { headers: { 'content-type': 'text/html' } });
const frontend = stopAfterAll(await startFetchServer(page));
/** A frontend that the service does not allow. */
const stranger = stopAfterAll(await startFetchServer(page));
/** Returns an origin on `127.0.0.1`. For browsers, `127.0.0.1` and the host `localhost` of the service are different sites. */
const originAt = ({ port }: { port: number }) => `http://127.0.0.1:${port}`;
const FRONTEND = originAt(frontend);

const Recipe = z.object({
  source: z.string(),
  has: z.array(z.object({ type: z.literal('header'), key: z.string(), value: z.string() })),
  headers: z.array(z.object({ key: z.string(), value: z.string() })),
});

/** Reads the recipe (the CORS headers that docs/clients.md recommends). Replaces its example origin with `FRONTEND`. */
function readRecipe(): Header {
  const [, text = ''] = /```json\n(.*?)```/s.exec(readFileSync('docs/clients.md', 'utf8')) ?? [];
  const { origin } = new URL(FRONTEND);
  return Recipe.parse(
    JSON.parse(
      text
        .replaceAll('https://app\\\\.example\\\\.com', origin.replaceAll('.', '\\\\.'))
        .replaceAll('https://app.example.com', origin),
    ),
  );
}

/** Folder of the build with the recipe. */
const FOLDER = `${BUILD_FOLDER}/with-the-recipe`;

/**
 * Copies the test build and adds the recipe to the routes-manifest.json of the copy. All other entries of the copy are symbolic
 * links. An operator would add the recipe to `headers` of next.config.ts, and `next build` would write the recipe to
 * routes-manifest.json.
 */
function buildWithRecipe(): void {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER);
  for (const name of readdirSync(BUILD_FOLDER)) {
    if (name !== path.basename(FOLDER) && name !== 'routes-manifest.json')
      symlinkSync(path.resolve(BUILD_FOLDER, name), path.join(FOLDER, name));
  }
  const Manifest = z.looseObject({ headers: z.array(z.unknown()) });
  const manifest = Manifest.parse(JSON.parse(readFileSync(`${BUILD_FOLDER}/routes-manifest.json`, 'utf8')));
  manifest.headers.push(buildCustomRoute('header', readRecipe()));
  writeFileSync(`${FOLDER}/routes-manifest.json`, JSON.stringify(manifest));
}

buildWithRecipe();
afterAll(() => rmSync(FOLDER, { recursive: true, force: true }));
const service = stopAfterAll(await startTestService({ environment: { IDP_AUTHORIZED_PARTIES: FRONTEND } }));
const serviceWithRecipe = stopAfterAll(
  await startServiceProcess({ ...service.environment, NEXT_DIST_DIR: FOLDER }),
);
const browser = stopAfterAll(await launchBrowser());

const token = () => tokenFor(service.idp, 'user_elsewhere', { azp: FRONTEND });

/** Calls the service from a page of the given origin. Returns the response, or 'blocked' if the browser blocks the call. */
async function callFrom(origin: string, url: string, init: RequestInit): Promise<object | 'blocked'> {
  const context = await browser.newContext();
  try {
    const tab: Page = await context.newPage();
    await tab.goto(origin);
    return await tab.evaluate(
      async ([address, options]) => {
        try {
          const response = await fetch(address, options);
          const requestId = response.headers.get('x-request-id');
          return { status: response.status, body: await response.json(), requestId };
        } catch {
          return 'blocked';
        }
      },
      [url, init] as const,
    );
  } finally {
    await context.close();
  }
}

test('A page of an allowed origin can send a bearer token and read success and error responses', async () => {
  const headers = { ...bearer(token()), 'content-type': 'application/json' };
  expect(await callFrom(FRONTEND, `${serviceWithRecipe.url}${ME}`, { headers })).toEqual({
    status: 200,
    body: expect.objectContaining({ identityProviderUserId: 'user_elsewhere' }),
    requestId: expect.any(String),
  });
  expect(
    await callFrom(FRONTEND, `${serviceWithRecipe.url}${ME}`, { headers: bearer('hello') }),
  ).toMatchObject({
    status: 401,
    body: { message: 'Unauthorized' },
  });
  await service.database.proxy.treat('refuse');
  const unknown = bearer(tokenFor(service.idp, 'user_in_an_outage', { azp: FRONTEND }));
  expect(await callFrom(FRONTEND, `${serviceWithRecipe.url}${ME}`, { headers: unknown })).toMatchObject({
    status: 500,
  });
  await service.database.proxy.treat('forward');
});

test('The browser blocks every request from a page of an origin that is not allowed. From a page of the allowed origin, it blocks requests with cookies', async () => {
  const headers = bearer(token());
  expect(await callFrom(originAt(stranger), `${serviceWithRecipe.url}${ME}`, { headers })).toBe('blocked');
  expect(await callFrom(FRONTEND, `${serviceWithRecipe.url}${ME}`, { headers, credentials: 'include' })).toBe(
    'blocked',
  );
});

test('The browser blocks cross-origin requests to a service without the CORS recipe, and to paths that the recipe does not cover', async () => {
  const headers = bearer(token());
  expect(await callFrom(FRONTEND, `${service.url}${ME}`, { headers })).toBe('blocked');
  expect(
    await callFrom(FRONTEND, `${serviceWithRecipe.url}/auth/v1/register`, {
      method: 'POST',
      headers,
      body: '{}',
    }),
  ).toBe('blocked');
});

test('A preflight request needs no valid credential. Its response allows the configured origin, but no other origin and no cookies', async () => {
  const preflight = (origin: string) =>
    send(`${serviceWithRecipe.url}${ME}`, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'GET',
        'access-control-request-headers': 'authorization',
        ...cookie('x'),
      },
    });
  const { status, headers } = await preflight(FRONTEND);
  expect(status).toBe(204);
  const allowHeaders = [...headers].filter(([name]) => name.startsWith('access-control-allow'));
  expect(Object.fromEntries(allowHeaders)).toEqual({
    'access-control-allow-origin': FRONTEND,
    'access-control-allow-methods': 'GET, POST',
    'access-control-allow-headers': 'authorization, content-type',
  });
  for (const origin of [originAt(stranger), 'null', `${FRONTEND}.evil.example`]) {
    const rejected = await preflight(origin);
    expect([...rejected.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
  }
});
