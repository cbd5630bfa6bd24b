import type { Context } from 'hono';
import { streamSSE } from 'hono/streaming';
import type { Instance } from '../instance/instance';
import { readChanges } from './changes';

/** Delay before a `changes` message. All changes during the delay are sent in this message. */
const GATHER_MILLISECONDS = 50;
const RECONNECT_MILLISECONDS = 1000;

/**
 * Streams the state of an instance to a page as server-sent events: first one `snapshot`, then `changes` events until the page
 * disconnects. A page that reads slowly gets fewer messages, because changes accumulate while a message is being sent.
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
