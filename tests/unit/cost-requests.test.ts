import { parse } from 'node:querystring';
import { expect, test } from 'vitest';
import { costAddresses, ordinaryRequest } from '../../tools/attack/cost/addresses';
import { DIMENSIONS, fill, sizesOf } from '../../tools/attack/cost/dimensions';
import { costTargets } from '../../tools/attack/cost/find';
import { WORST_SHAPES, worstRequest } from '../../tools/attack/cost/readiness';
import { type CostRequest, serialize } from '../../tools/attack/cost/request';
import { HOOK, ME, REGISTER } from '../harness/requests';

/** A value with the length of a session token of the identity provider. */
const TOKEN = 'a'.repeat(800);
/** Limit of Node.js for the request line and the headers together. */
const MAX_HEAD = 16_384;

// The search for expensive requests starts with an ordinary request and enlarges one property at a time, such as the number of
// cookies. Each such property is a dimension. The largest request of a dimension has the maximum size of this property. A
// target is an address with the dimensions that apply to it.
const addresses = costAddresses('/_next/static/chunks/a.js');
/** The empty pattern selects all targets. */
const targets = costTargets(addresses, TOKEN, /(?:)/);

const largest = (dimensionName: string, path: string, method: CostRequest['method'] = 'GET'): CostRequest => {
  const dimension = DIMENSIONS.find(({ name }) => name === dimensionName);
  const address = addresses.find((each) => each.path === path);
  if (!dimension || !address) throw new Error(`Unknown dimension "${dimensionName}" or path ${path}`);
  return dimension.grow(ordinaryRequest(address, method, TOKEN), dimension.maxBytes);
};

const headerOf = ({ headers }: CostRequest, wanted: string) =>
  headers.filter(([name]) => name === wanted).map(([, value]) => value);

test('costAddresses() returns API paths, pages and a static file, and each path occurs only once', () => {
  const paths = addresses.map(({ path }) => path);
  expect(paths).toEqual(expect.arrayContaining([ME, REGISTER, HOOK, '/health/ready', '/openapi.json']));
  expect(paths).toEqual(expect.arrayContaining(['/', '/sign-in', '/sign-up', '/account', '/docs']));
  expect(paths).toContain('/_next/static/chunks/a.js');
  expect(new Set(paths).size).toBe(paths.length);
});

test('costAddresses() marks only /users/v1/me and the register route as addresses that need a session', () => {
  const guardedPaths = addresses.filter(({ needsSession }) => needsSession).map(({ path }) => path);
  expect(guardedPaths).toEqual([ME, REGISTER]);
});

test('In the cost measurement, the ordinary request to the register route has a valid body', () => {
  const target = targets.find(({ address }) => address === `POST ${REGISTER}`);
  expect(JSON.parse(target?.ordinary.body ?? '')).toEqual({
    identityProviderUserId: expect.stringMatching(/^user_/),
  });
});

test('Every dimension of the cost measurement has a unique name and applies to at least one address', () => {
  const names = DIMENSIONS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(new Set(targets.flatMap(({ dimensions }) => dimensions.map(({ name }) => name)))).toEqual(
    new Set(names),
  );
});

test.each(DIMENSIONS)(
  'The head of the largest request of a dimension is below the size limit of Node.js: $name',
  (dimension) => {
    for (const { ordinary, dimensions } of targets.filter((target) =>
      target.dimensions.includes(dimension),
    )) {
      expect(dimensions).toContain(dimension);
      const head = serialize(dimension.grow(ordinary, dimension.maxBytes))
        .toString('latin1')
        .split('\r\n\r\n')[0];
      expect(head?.length).toBeLessThan(MAX_HEAD);
    }
  },
);

test.each(DIMENSIONS)(
  'A request becomes larger when the size of its dimension increases: $name',
  (dimension) => {
    const target = targets.find(({ dimensions }) => dimensions.includes(dimension));
    if (!target) throw new Error(`No address has the dimension ${dimension.name}`);
    const lengths = sizesOf(dimension, 4, 5).map(
      (bytes) => serialize(dimension.grow(target.ordinary, bytes)).length,
    );
    expect(lengths).toEqual(lengths.toSorted((one, other) => one - other));
    const growth = (lengths.at(-1) ?? 0) - (lengths[0] ?? 0);
    expect(growth).toBeGreaterThan(0.85 * dimension.maxBytes);
  },
);

test('fill() repeats a unit only as often as the unit fits into the size', () => {
  expect(fill(7, () => 'ab')).toBe('ababab');
  expect(fill(6, (index) => `${index}`.repeat(index + 1))).toBe('011222');
});

test('sizesOf() returns sizes that ascend to the maximum of the dimension', () => {
  const [dimension] = DIMENSIONS;
  expect(dimension && sizesOf(dimension, 4, 3)).toEqual([937, 3_750, 15_000]);
});

test('The largest request with a repeated query parameter contains the parameter 7,500 times', () => {
  expect(largest('query: one name repeated', '/').target).toBe(`/?${'a&'.repeat(7_500)}`);
});

test('The largest request with different query parameters has more than 2,400 of them', () => {
  const [, search] = largest('query: different names', '/').target.split('?');
  expect(Object.keys(parse(search ?? '', '&', '=', { maxKeys: 0 })).length).toBeGreaterThan(2_400);
});

test('The largest request with different cookies has more than 1,800 of them', () => {
  const [cookie = ''] = headerOf(largest('cookies: different names', ME), 'cookie');
  expect(new Set(cookie.split('; ').filter(Boolean)).size).toBeGreaterThan(1_800);
});

test('The largest server action in one-byte chunks has 100,000 chunks', () => {
  const request = largest('body: one-byte chunks with next-action', '/sign-in', 'POST');
  expect(headerOf(request, 'next-action')).toEqual([expect.stringMatching(/^[0-9a-f]{40}$/)]);
  const [, framed = ''] = serialize(request)
    .toString('latin1')
    .split(/\r\n\r\n/, 2);
  expect(framed.match(/1\r\na/g)).toHaveLength(100_000);
});

test('The largest webhook delivery with an invalid signature has a signature of the right length, a current timestamp and a body of 1 MB', () => {
  const request = largest('webhook: body size, any svix-signature', HOOK, 'POST');
  expect(headerOf(request, 'svix-signature')).toEqual([`v1,${'A'.repeat(43)}=`]);
  expect(Math.abs(Number(headerOf(request, 'svix-timestamp')[0]) - Date.now() / 1_000)).toBeLessThan(200);
  expect(request.body?.length).toBeGreaterThan(1_048_000);
});

test('Generated JSON of different widths and depths can be parsed', () => {
  for (const name of ['body: JSON depth', 'body: JSON width'])
    for (const bytes of [2, 7, 1_000]) {
      const dimension = DIMENSIONS.find((each) => each.name === name);
      const target = targets.find(({ address }) => address === `POST ${REGISTER}`);
      if (!dimension || !target) throw new Error(`There is no ${name}`);
      expect(() => JSON.parse(dimension.grow(target.ordinary, bytes).body ?? '')).not.toThrow();
    }
});

test('costTargets() returns only the targets and the dimensions that the pattern matches', () => {
  const found = costTargets(addresses, TOKEN, /GET \/sign-in query: different/);
  expect(found.map(({ address, dimensions }) => [address, dimensions.map(({ name }) => name)])).toEqual([
    ['GET /sign-in', ['query: different names', 'query: different __clerk_ names']],
  ]);
});

test.each(WORST_SHAPES)(
  'worstRequest() returns a request that has the given method and is larger than the given size: $dimension',
  (shape) => {
    const request = worstRequest(shape, TOKEN);
    expect(request.method).toBe(shape.method);
    expect(serialize(request).length).toBeGreaterThan(shape.bytes);
  },
);
