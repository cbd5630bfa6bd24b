import type { Context } from 'hono';
import { streamSSE } from 'hono/streaming';
import type { Mail, OAuthClient, OAuthGrant, Session, User } from '../instance/data';
import type { Instance } from '../instance/instance';
import type { LoggedRequest } from '../instance/requests';
import type { Delivery } from '../instance/webhook-attempt';
import type { DeliverySettings } from '../instance/webhooks';

/** A user on the page, with the sessions of the user but without the password hash and the metadata. */
export type UserRow = Pick<User, 'id' | 'email' | 'createdAt'> & {
  readonly hasPassword: boolean;
  readonly sessions: readonly Session[];
};

/** The state that the page shows. Each list has the newest rows, newest first. */
export interface State {
  readonly endpoint: DeliverySettings & { readonly url: string | null; readonly paused: boolean };
  /** Number of rows of each list, including the rows that the page does not show. */
  readonly counts: Readonly<Record<'mails' | 'users' | 'clients' | 'deliveries' | 'requests', number>>;
  readonly mails: readonly Mail[];
  readonly users: readonly UserRow[];
  readonly clients: readonly Omit<OAuthClient, 'secret'>[];
  readonly consents: readonly Omit<OAuthGrant, 'tokens'>[];
  readonly deliveries: readonly Delivery[];
  readonly requests: readonly LoggedRequest[];
}

const SHOWN_ROWS = 50;
/** Delay before a message. All changes during the delay are part of the message. */
const GATHER_MS = 100;

const newest = <Row>(rows: readonly Row[]) => rows.slice(-SHOWN_ROWS).reverse();

function readState({ store, webhooks, requests }: Instance): State {
  const mails = store.mails.all();
  const users = store.users.all();
  const deliveries = webhooks.list();
  const logged = requests.all();
  return {
    endpoint: { ...webhooks.settings, url: webhooks.endpoint?.url ?? null, paused: webhooks.paused },
    counts: {
      mails: mails.length,
      users: users.length,
      clients: store.oauthClients.size(),
      deliveries: deliveries.length,
      requests: logged.length,
    },
    mails: newest(mails),
    users: newest(users).map(({ id, email, createdAt, password }) => ({
      id,
      email,
      createdAt,
      hasPassword: password !== null,
      sessions: newest(store.sessions.all().filter(({ userId }) => userId === id)),
    })),
    clients: newest(store.oauthClients.all()).map(({ secret, ...client }) => client),
    consents: newest(store.oauthGrants.all()).map(({ tokens, ...grant }) => grant),
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
