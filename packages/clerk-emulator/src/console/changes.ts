import type { Delivery, Mail, Session, User } from '../instance/data';
import type { Instance } from '../instance/instance';

/** A user as the console shows one: without the password's hash and the metadata. */
export type UserRow = Pick<User, 'id' | 'email' | 'createdAt'> & { readonly hasPassword: boolean };

/** The webhook endpoint as it is set now. */
export interface EndpointState {
  readonly url: string | null;
  readonly paused: boolean;
  readonly signatureBroken: boolean;
}

/** What became of a table: rows that are new or different, in the table's order, and the ids of rows that left. */
export interface TableChanges<Row> {
  readonly put: readonly Row[];
  readonly gone: readonly string[];
}

/** What the page is sent: all there is in the first message of a connection, then what has changed since the last. */
export interface Changes {
  /** The stand-in's time, by which the page counts down. */
  readonly now: number;
  readonly endpoint: EndpointState;
  readonly users: TableChanges<UserRow>;
  readonly sessions: TableChanges<Session>;
  readonly mails: TableChanges<Mail>;
  readonly deliveries: TableChanges<Delivery>;
}

/** A reader of the store that returns, at each call, what has changed since the call before; at first everything. */
export function readChanges({ store, webhooks, clock }: Instance): () => Changes {
  const users = tableReader(store.users);
  const sessions = tableReader(store.sessions);
  const mails = tableReader(store.mails);
  const deliveries = tableReader(store.deliveries);
  return () => {
    const { put, gone } = users();
    return {
      now: clock.now(),
      endpoint: {
        url: webhooks.endpoint?.url ?? null,
        paused: webhooks.paused,
        signatureBroken: webhooks.signatureBroken,
      },
      users: { put: put.map(userRow), gone },
      sessions: sessions(),
      mails: mails(),
      deliveries: deliveries(),
    };
  };
}

function userRow({ id, email, createdAt, password }: User): UserRow {
  return { id, email, createdAt: Math.floor(createdAt), hasPassword: password !== null };
}

/** A row of the store is replaced when it changes, so that the same object is the same row. */
function tableReader<Row extends { readonly id: string }>(table: { all(): Row[] }): () => TableChanges<Row> {
  let known = new Map<string, Row>();
  return () => {
    const current = new Map(table.all().map((row) => [row.id, row]));
    const put = [...current.values()].filter((row) => known.get(row.id) !== row);
    const gone = [...known.keys()].filter((id) => !current.has(id));
    known = current;
    return { put, gone };
  };
}
