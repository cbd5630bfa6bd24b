import { channel } from 'node:diagnostics_channel';
import { expect, test } from 'vitest';
import { standInFront } from '../../lib/gate';

test('what else is told of connections in this process is not taken for one, and ends nothing', async () => {
  const uncaught: unknown[] = [];
  const note = (error: unknown) => uncaught.push(error);
  process.on('uncaughtException', note);
  standInFront();
  for (const message of [undefined, null, {}, { socket: null }, { socket: { server: {} } }, 'x']) {
    channel('net.server.socket').publish(message);
  }
  // What a subscriber throws is thrown anew in the next tick.
  await new Promise(setImmediate);
  process.off('uncaughtException', note);
  expect(uncaught).toEqual([]);
});
