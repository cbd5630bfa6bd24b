import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { parseMap } from '#lib/operator/relink-map';

// A map is a CSV file that lists the old and the new id of each user that moves to another instance of the identity provider.
const parse = (text: string) => parseMap(Readable.from([text]), ['old', 'new']);
const pairs = async (text: string) =>
  (await parse(text)).flatMap(({ line, oldId, newId, collision }) =>
    collision ? [] : [[line, oldId, newId]],
  );

test('A map may have a heading, empty lines, a byte order mark and quoted fields', async () => {
  expect(await pairs('\ufeffold,new\r\na,b\r\n\r\n"c,""d""","e"\n')).toEqual([
    [2, 'a', 'b'],
    [4, 'c,"d"', 'e'],
  ]);
  expect(await pairs('a,b\nold,new')).toEqual([
    [1, 'a', 'b'],
    [2, 'old', 'new'],
  ]);
});

test.each(['a', 'a,b,c', 'a,"b', 'a,b"c', 'a;b'])(
  'A map with a malformed line is rejected: %s',
  async (line) => {
    await expect(parse(`x,y\n${line}\n`)).rejects.toThrow(/^Line [23] of the map is malformed/);
  },
);

test('A map in Latin-1 is rejected with the number of the line', async () => {
  const parsing = parseMap(Readable.from([Buffer.from('a,b\nc,caf\u00e9\n', 'latin1')]), ['old', 'new']);
  await expect(parsing).rejects.toThrow('Line 2 of the map is not UTF-8');
});

test('A line of a map is a collision if an id is invalid, has outer white space or occurs twice', async () => {
  const long = 'u'.repeat(256);
  const map = `a,1\na,2\nb,3\nc,3\n,h\ni,\nj,${long}\n${long.slice(1)},k\nl,a\nm, n\n\to,p\nq\u200b,r\ns,\u00a0t${[...'\u0085\u3164\u115f\ufe0f\u2800'].map((end, at) => `\nu${at},v${at}${end}`).join('')}`;
  const collisions = (await parse(map)).filter(({ collision }) => collision);
  expect(collisions.map(({ line, collision }) => [line, collision])).toEqual([
    ...[1, 2, 3, 4].map((line) => [line, 'id occurs twice']),
    ...[5, 6, 7].map((line) => [line, 'invalid id']),
    ...[10, 11, 12, 13, 14, 15, 16, 17, 18].map((line) => [line, 'white space around an id']),
  ]);
  expect(await pairs(map)).toEqual([
    [8, long.slice(1), 'k'],
    [9, 'l', 'a'],
  ]);
});
