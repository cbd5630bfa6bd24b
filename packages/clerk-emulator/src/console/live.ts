import type { Context } from 'hono';
import { streamSSE } from 'hono/streaming';
import type { Instance } from '../instance/instance';
import { readChanges } from './changes';

/** Changes within this time are sent in one message. The delay is too short to notice. */
const GATHER_MILLISECONDS = 50;
const RECONNECT_MILLISECONDS = 1000;

/**
 * Streams changes to a page as server-sent events: one `snapshot`, then `changes` until the page disconnects. A page that
 * reads slowly gets fewer messages.
 */
export function follow(instance: Instance, context: Context): Response {
  return streamSSE(context, async (stream) => {
    const read = readChanges(instance);
    const send = (event: 'snapshot' | 'changes') => stream.writeSSE({ event, data: JSON.stringify(read()) });
    let isChanged = false;
    let wake = () => {};
    const changed = () => {
      isChanged = true;
      wake();
    };
    stream.onAbort(instance.store.onChange(changed));
    stream.onAbort(changed);
    await stream.write(`retry: ${RECONNECT_MILLISECONDS}\n`);
    await send('snapshot');
    while (!stream.aborted) {
      if (!isChanged) await new Promise<void>((resolve) => (wake = resolve));
      await stream.sleep(GATHER_MILLISECONDS);
      isChanged = false;
      await send('changes');
    }
  });
}
