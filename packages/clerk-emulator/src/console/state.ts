import type { Context } from 'hono';
import { streamSSE } from 'hono/streaming';
import type { Instance } from '../instance/instance';

const SHOWN_ROWS = 50;
/** Delay before a message. All changes during the delay are part of the message. */
const GATHER_MS = 100;

const newest = <Row>(rows: readonly Row[]) => rows.slice(-SHOWN_ROWS).reverse();

/** The state that the page shows. Each list has the newest rows, newest first, without hashes, secrets and tokens. */
export type State = ReturnType<typeof readState>;

function readState({ store, webhooks, requests }: Instance) {
  const { users, mails, sessions, oauthClients, oauthGrants } = store;
  const logged = requests.all();
  const deliveries = webhooks.list();
  return {
    endpoint: { ...webhooks.settings, url: webhooks.endpoint?.url ?? null },
    /** Number of rows of each list, including the rows that the page does not show. */
    counts: {
      mails: mails.size(),
      users: users.size(),
      clients: oauthClients.size(),
      deliveries: deliveries.length,
      requests: logged.length,
    },
    mails: newest(mails.all()),
    users: newest(users.all()).map(({ id, email, createdAt, password }) => {
      return {
        id,
        email,
        createdAt,
        hasPassword: password !== null,
        sessions: newest(sessions.where('userId', id)),
      };
    }),
    clients: newest(oauthClients.all()).map(({ id, name }) => {
      const consents = newest(oauthGrants.where('clientId', id)).map(
        ({ userId, createdAt, request: { scope } }) => ({ userId, createdAt, scope }),
      );
      return { id, name, consents };
    }),
    deliveries: newest(deliveries),
    requests: newest(logged),
  };
}

/** Streams the state of an instance to a page as server-sent events, one event after each change. */
export function streamState(instance: Instance, context: Context): Response {
  return streamSSE(context, async (stream) => {
    let isChanged = true;
    let wake = () => {};
    const changed = () => {
      isChanged = true;
      wake();
    };
    stream.onAbort(instance.store.onChange(changed));
    stream.onAbort(changed);
    while (!stream.aborted) {
      if (!isChanged) await new Promise<void>((resolve) => (wake = resolve));
      isChanged = false;
      await stream.writeSSE({ data: JSON.stringify(readState(instance)) });
      await stream.sleep(GATHER_MS);
    }
  });
}
