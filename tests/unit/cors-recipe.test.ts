import { readFileSync } from 'node:fs';
import { unstable_getResponseFromNextConfig } from 'next/experimental/testing/server';
import { expect, test } from 'vitest';
import { z } from 'zod';

const Recipe = z.object({
  source: z.string(),
  has: z.array(z.object({ type: z.literal('header'), key: z.string(), value: z.string() })),
  headers: z.array(z.object({ key: z.string(), value: z.string() })),
});

/** The entry of `headers` in next.config.ts that docs/clients.md recommends. */
const recipe = Recipe.parse(
  JSON.parse(/```json\n(.*?)```/s.exec(readFileSync('docs/clients.md', 'utf8'))?.[1] ?? ''),
);

test.each([
  ['/users/v1/me', 'https://app.example.com', true],
  ['/users/v1/me', 'https://appXexample.com', false],
  ['/users/v1/me', 'https://app.example.com.evil.example', false],
  ['/users/v1/me', 'null', false],
  ['/auth/v1/register', 'https://app.example.com', false],
])('The CORS recipe of docs/clients.md: %s allows the origin %s: %s', async (path, origin, isAllowed) => {
  const { headers } = await unstable_getResponseFromNextConfig({
    url: `http://localhost${path}`,
    nextConfig: { headers: () => [recipe] },
    headers: { origin },
  });
  expect(headers.get('access-control-allow-origin')).toBe(isAllowed ? origin : null);
  expect(headers.has('access-control-allow-credentials')).toBe(false);
});
