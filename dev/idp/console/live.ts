import type { ServerResponse } from 'node:http';
import type { Instance } from '../instance';
import { readChanges } from './changes';

/** The open pages, each of which is told of every change. */
export interface LivePages {
  /** Answers with a stream of server-sent events: a `snapshot`, then `changes`, until the page goes. */
  serve(response: ServerResponse): void;
  /** Tells of a change that the store does not know of. */
  announce(): void;
  stop(): void;
}

/** A burst of changes becomes one message; a person takes this for at once. */
const GATHER_MILLISECONDS = 50;
const RECONNECT_MILLISECONDS = 1000;

/** Follows the store on behalf of every page that is connected. A page that reads slowly is sent fewer messages. */
export function followStore(instance: Instance): LivePages {
  const pages = new Set<() => void>();
  const announce = () => {
    for (const changed of pages) changed();
  };
  const unsubscribe = instance.store.onChange(announce);
  return {
    announce,
    serve(response) {
      const read = readChanges(instance);
      let timer: NodeJS.Timeout | undefined;
      const send = (event: 'snapshot' | 'changes') =>
        response.write(`event: ${event}\ndata: ${JSON.stringify(read())}\n\n`);
      const gathered = () => {
        if (response.writableNeedDrain) {
          response.once('drain', gathered);
          return;
        }
        timer = undefined;
        send('changes');
      };
      const changed = () => {
        timer ??= setTimeout(gathered, GATHER_MILLISECONDS);
      };
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`retry: ${RECONNECT_MILLISECONDS}\n`);
      send('snapshot');
      pages.add(changed);
      response.once('close', () => {
        clearTimeout(timer);
        pages.delete(changed);
      });
    },
    stop: () => void unsubscribe(),
  };
}
