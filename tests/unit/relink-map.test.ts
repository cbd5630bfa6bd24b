import { expect, test } from 'vitest';
import { checkMap, parseMap } from '#lib/users/relink-map';

// A map is a file that lists the old and the new id of each user that moves to another instance of the identity provider.
/** Returns the line number, the old id and the new id of each valid line. */
const pairs = (text: string) => parseMap(text).lines.map(({ line, oldId, newId }) => [line, oldId, newId]);
/** Returns the line number and the problem of each invalid line, and the number of the line that it collides with. */
const kinds = (text: string) =>
  parseMap(text).collisions.map(({ line, kind, other }) => [line, kind, ...(other ? [other] : [])]);

test('parseMap() reads CSV lines and JSON lines, and skips a heading, empty lines and a byte order mark', () => {
  expect(pairs('\ufeffold,new\r\na,b\r\n\r\n"c,""d""","e"\n{"old":"f","new":"g,h"}\n')).toEqual([
    [2, 'a', 'b'],
    [4, 'c,"d"', 'e'],
    [5, 'f', 'g,h'],
  ]);
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

test('parseMap() reports each invalid line and each line that collides with another line. It returns the remaining lines', () => {
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
