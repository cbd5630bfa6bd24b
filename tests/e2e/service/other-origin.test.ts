import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { buildCustomRoute } from 'next/dist/lib/build-custom-route';
import type { Header } from 'next/dist/lib/load-custom-routes';
import type { Page } from 'playwright';
import { afterAll, expect, test } from 'vitest';
import { z } from 'zod';
import { launchBrowser } from '../../harness/browser/chromium';
import { BUILD_FOLDER } from '../../harness/build';
import { startHttpServer } from '../../harness/parts/impostor';
import { bearer, cookie, ME, send, tokenFor } from '../../harness/requests';
import { startServiceProcess, startTestService } from '../../harness/service';
import { stopAfterAll } from '../../vitest/stop-after-all';

const page = () =>
  new Response('<!doctype html><title>A frontend</title>', { headers: { 'content-type': 'text/html' } });
const frontend = stopAfterAll(await startHttpServer(page));
const stranger = stopAfterAll(await startHttpServer(page));
/** Of another site than the service, which is at `localhost`. */
const originOf = ({ port }: { port: number }) => `http://127.0.0.1:${port}`;
const FRONTEND = originOf(frontend);

const Recipe = z.object({
  source: z.string(),
  has: z.array(z.object({ type: z.literal('header'), key: z.string(), value: z.string() })),
  headers: z.array(z.object({ key: z.string(), value: z.string() })),
});

/** The recipe of docs/clients.md, for the frontend of this test. */
function recipe(): Header {
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

const FOLDER = `${BUILD_FOLDER}/with-the-recipe`;

/** The build of the tests as it would be with that recipe: `next build` writes what `headers` returns into one file. */
function buildWithRecipe(): void {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER);
  for (const name of readdirSync(BUILD_FOLDER)) {
    if (name !== path.basename(FOLDER) && name !== 'routes-manifest.json')
      symlinkSync(path.resolve(BUILD_FOLDER, name), path.join(FOLDER, name));
  }
  const Manifest = z.looseObject({ headers: z.array(z.unknown()) });
  const manifest = Manifest.parse(JSON.parse(readFileSync(`${BUILD_FOLDER}/routes-manifest.json`, 'utf8')));
  manifest.headers.push(buildCustomRoute('header', recipe()));
  writeFileSync(`${FOLDER}/routes-manifest.json`, JSON.stringify(manifest));
}

buildWithRecipe();
afterAll(() => rmSync(FOLDER, { recursive: true, force: true }));
const service = stopAfterAll(await startTestService({ environment: { IDP_AUTHORIZED_PARTIES: FRONTEND } }));
const open = stopAfterAll(await startServiceProcess({ ...service.environment, NEXT_DIST_DIR: FOLDER }));
const browser = stopAfterAll(await launchBrowser());

const token = () => tokenFor(service.idp, 'user_elsewhere', { azp: FRONTEND });

/** What a page of that origin reads when it calls the service: nothing, where the browser keeps it from it. */
async function call(origin: string, url: string, init: RequestInit): Promise<object | 'blocked'> {
  const context = await browser.newContext();
  try {
    const there: Page = await context.newPage();
    await there.goto(origin);
    return await there.evaluate(
      async ([address, given]) => {
        try {
          const response = await fetch(address, given);
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

test('a page of the origin that is named calls with a bearer, and reads every answer', async () => {
  const headers = { ...bearer(token()), 'content-type': 'application/json' };
  expect(await call(FRONTEND, `${open.url}${ME}`, { headers })).toEqual({
    status: 200,
    body: expect.objectContaining({ identityProviderUserId: 'user_elsewhere' }),
    requestId: expect.any(String),
  });
  expect(await call(FRONTEND, `${open.url}${ME}`, { headers: bearer('hello') })).toMatchObject({
    status: 401,
    body: { message: 'Unauthorized' },
  });
  await service.database.proxy.treat('refuse');
  const unknown = bearer(tokenFor(service.idp, 'user_in_an_outage', { azp: FRONTEND }));
  expect(await call(FRONTEND, `${open.url}${ME}`, { headers: unknown })).toMatchObject({ status: 500 });
  await service.database.proxy.treat('forward');
});

test('no other page does, and none sends cookies', async () => {
  const headers = bearer(token());
  expect(await call(originOf(stranger), `${open.url}${ME}`, { headers })).toBe('blocked');
  expect(await call(FRONTEND, `${open.url}${ME}`, { headers, credentials: 'include' })).toBe('blocked');
});

test('without the recipe, and on paths that it does not name, no page of another origin does', async () => {
  const headers = bearer(token());
  expect(await call(FRONTEND, `${service.url}${ME}`, { headers })).toBe('blocked');
  expect(await call(FRONTEND, `${open.url}/auth/v1/register`, { method: 'POST', headers, body: '{}' })).toBe(
    'blocked',
  );
});

test('what is asked beforehand needs no credential, and names neither everybody nor cookies', async () => {
  const preflight = (origin: string) =>
    send(`${open.url}${ME}`, {
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
  const told = [...headers].filter(([name]) => name.startsWith('access-control-allow'));
  expect(Object.fromEntries(told)).toEqual({
    'access-control-allow-origin': FRONTEND,
    'access-control-allow-methods': 'GET, POST',
    'access-control-allow-headers': 'authorization, content-type',
  });
  for (const origin of [originOf(stranger), 'null', `${FRONTEND}.evil.example`]) {
    const refused = await preflight(origin);
    expect([...refused.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
  }
});
