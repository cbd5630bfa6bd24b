import { afterEach, expect, test, vi } from 'vitest';
import { checkMap, parseMap, REMEDIES, readExternalIds } from '#lib/users/relink-map';
import { SECRET_KEY } from '../harness/keys';
import { stubProviderUsers } from '../harness/provider-users';

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

// A map is a file that lists the old and the new id of each user that moves to another instance of the identity provider.
/** Returns the line number, the old id and the new id of each valid line. */
const pairs = (text: string) => parseMap(text).lines.map(({ line, oldId, newId }) => [line, oldId, newId]);
/** Returns the line number and the problem of each reported line, and the number of the other line if two lines collide. */
const kinds = (text: string) =>
  parseMap(text).collisions.map(({ line, kind, otherLine }) => [
    line,
    kind,
    ...(otherLine ? [otherLine] : []),
  ]);

test('parseMap() reads CSV lines and JSON lines, and skips a heading, empty lines and a byte order mark', () => {
  expect(pairs('\ufeffold,new\r\na,b\r\n\r\n"c,""d""","e"\n{"old":"f","new":"g,h"}\n')).toEqual([
    [2, 'a', 'b'],
    [4, 'c,"d"', 'e'],
    [5, 'f', 'g,h'],
  ]);
  expect(pairs('"a",",""b"')).toEqual([[1, 'a', ',"b']]);
  expect(pairs('"""a""",""""')).toEqual([[1, '"a"', '"']]);
  expect(pairs('a,b\ufeff')).toEqual([[1, 'a', 'b\ufeff']]);
  expect(pairs('a,b\nold,new')).toEqual([
    [1, 'a', 'b'],
    [2, 'old', 'new'],
  ]);
});

test.each(['a', 'a,b,c', 'a,"b', 'a,b"c', '{"old":"a"}', '{"old":"a","new":1}', '{"old":', 'a;b'])(
  'parseMap() reports a malformed line and reads the other lines: %s',
  (line) => {
    expect(kinds(`x,y\n${line}\n`)).toEqual([[2, 'malformed line']]);
    expect(pairs(`x,y\n${line}\n`)).toEqual([[1, 'x', 'y']]);
  },
);

test('parseMap() reports invalid lines, lines whose old or new id occurs twice, and lines whose new id is the old id of another line. It returns the remaining lines', () => {
  const map = ['a,1', 'a,2', 'b,3', 'c,3', 'd,e', 'e,f', 'g,g', ',h', 'i,', 'j,k', 'a,1'].join('\n');
  expect(kinds(map)).toEqual([
    [1, 'old id occurs twice', 2],
    [2, 'old id occurs twice', 1],
    [3, 'new id occurs twice', 4],
    [4, 'new id occurs twice', 3],
    [5, 'new id is the old id of another line', 6],
    [7, 'old id equals new id'],
    [8, 'invalid old id'],
    [9, 'invalid new id'],
    [11, 'old id occurs twice', 1],
  ]);
  expect(pairs(map)).toEqual([
    [6, 'e', 'f'],
    [10, 'j', 'k'],
  ]);
});

test('checkMap() accepts an id of 255 characters and reports a longer id, because the service does not accept longer ids', () => {
  const line = { line: 1, oldId: 'a', newId: 'u'.repeat(255) };
  expect(checkMap([line])).toEqual({ lines: [line], collisions: [] });
  const long = { ...line, newId: 'u'.repeat(256) };
  expect(checkMap([long])).toEqual({ lines: [], collisions: [{ ...long, kind: 'invalid new id' }] });
});

test('A problem that parseMap() reports for a well-formed line contains both ids of the line, and each kind of problem has a remedy', () => {
  const maps = ['a,1\na,2', 'a,1\nb,1', 'a,b\nb,c', 'a,a', ',a', 'a,'];
  const collisions = maps.flatMap((map) => parseMap(map).collisions);
  expect(collisions).toEqual([
    { line: 1, oldId: 'a', newId: '1', kind: 'old id occurs twice', otherLine: 2 },
    { line: 2, oldId: 'a', newId: '2', kind: 'old id occurs twice', otherLine: 1 },
    { line: 1, oldId: 'a', newId: '1', kind: 'new id occurs twice', otherLine: 2 },
    { line: 2, oldId: 'b', newId: '1', kind: 'new id occurs twice', otherLine: 1 },
    { line: 1, oldId: 'a', newId: 'b', kind: 'new id is the old id of another line', otherLine: 2 },
    { line: 1, oldId: 'a', newId: 'a', kind: 'old id equals new id' },
    { line: 1, oldId: '', newId: 'a', kind: 'invalid old id' },
    { line: 1, oldId: 'a', newId: '', kind: 'invalid new id' },
  ]);
  for (const { kind } of collisions) expect(REMEDIES).toHaveProperty([kind], expect.stringMatching(/^[A-Z]/));
  for (const remedy of Object.values(REMEDIES)) expect(remedy).toMatch(/^[A-Z]/);
});

test('readExternalIds() returns a line for each provider user with an external id, and reports external ids that occur twice', async () => {
  vi.stubEnv('IDP_SECRET_KEY', SECRET_KEY);
  const provider = stubProviderUsers();
  provider.users = Array.from({ length: 501 }, (_, index) => ({
    id: `new_${index}`,
    createdAt: index,
    externalId: index < 5 ? ['', null, undefined, 'old_twice', 'old_twice'][index] : `old_${index}`,
  }));
  provider.failures.push(() => new Response('', { status: 503 }));
  const waits: string[] = [];
  const { lines, collisions } = await readExternalIds({
    seconds: 5,
    onWait: (reason) => waits.push(reason),
    sleep: async () => undefined,
  });
  expect(waits).toEqual(['the identity provider responds with status 503']);
  expect(collisions).toMatchObject([
    { line: 1, newId: 'new_3', kind: 'old id occurs twice', otherLine: 2 },
    { line: 2, newId: 'new_4', kind: 'old id occurs twice', otherLine: 1 },
  ]);
  expect(lines).toHaveLength(496);
  expect([lines[0], lines.at(-1)]).toEqual([
    { line: 3, oldId: 'old_5', newId: 'new_5' },
    { line: 498, oldId: 'old_500', newId: 'new_500' },
  ]);
});
