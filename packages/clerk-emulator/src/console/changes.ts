import type { Delivery, Mail, Session, User } from '../instance/data';
import type { PendingFailure } from '../instance/failures';
import type { Instance } from '../instance/instance';
import type { LoggedRequest } from '../instance/requests';

/** A user as the console (the web page of the emulator) shows it, without password hash and metadata. */
export type UserRow = Pick<User, 'id' | 'email' | 'createdAt'> & { readonly hasPassword: boolean };

/** Current state of the webhook endpoint. */
export interface EndpointState {
  readonly url: string | null;
  readonly paused: boolean;
  readonly signatureBroken: boolean;
}

/** Changes of a table: new and changed rows in the order of the table, and the ids of deleted rows. */
export interface TableChanges<Row> {
  readonly put: readonly Row[];
  readonly gone: readonly string[];
}

/**
 * A message to an open console page. The first message of a connection contains all rows. Each later message contains the
 * changes since the previous message.
 */
export interface Changes {
  /** Current time of the emulator's clock, in milliseconds since 1970. The page uses it for countdowns. */
  readonly now: number;
  readonly endpoint: EndpointState;
  readonly users: TableChanges<UserRow>;
  readonly sessions: TableChanges<Session>;
  readonly mails: TableChanges<Mail>;
  readonly deliveries: TableChanges<Delivery>;
  readonly failures: TableChanges<PendingFailure>;
  readonly requests: TableChanges<LoggedRequest>;
}

/** Creates a function that returns the changes since its previous call. The first call returns all rows. */
export function readChanges({ store, webhooks, failures, requests, clock }: Instance): () => Changes {
  const users = tableReader(store.users);
  const sessions = tableReader(store.sessions);
  const mails = tableReader(store.mails);
  const deliveries = tableReader(store.deliveries);
  const pending = tableReader({ all: failures.list });
  const logged = tableReader(requests);
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
      failures: pending(),
      requests: logged(),
    };
  };
}

function userRow({ id, email, createdAt, password }: User): UserRow {
  return { id, email, createdAt: Math.floor(createdAt), hasPassword: password !== null };
}

/** Compares rows by object identity, because the store replaces the object of a row that changes. */
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
