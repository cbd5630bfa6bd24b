// @ts-check

/** @import { Changes, EndpointState, TableChanges, UserRow } from '../changes' */
/** @import { Delivery, Mail, Session } from '../../instance/data' */
/** @import { PendingFailure } from '../../instance/failures' */
/** @import { LoggedRequest } from '../../instance/requests' */

/**
 * The state of the emulator. Each table is in the order of the emulator, oldest first.
 * @typedef {object} Model
 * @property {EndpointState} endpoint
 * @property {ReadonlyMap<string, UserRow>} users
 * @property {ReadonlyMap<string, Session>} sessions
 * @property {ReadonlyMap<string, Mail>} mails
 * @property {ReadonlyMap<string, Delivery>} deliveries
 * @property {ReadonlyMap<string, PendingFailure>} failures
 * @property {ReadonlyMap<string, LoggedRequest>} requests
 * @property {() => number} now Returns the time of the emulator.
 */

/**
 * Callbacks for changes of the state.
 * @typedef {object} Listener
 * @property {(model: Model, news: Changes | undefined) => void} changed `news` contains the changes. It is undefined
 * after a snapshot, which is a message with all rows.
 * @property {(since: Date | undefined) => void} connection `since` is the time of the last message. It is undefined
 * while connected.
 */

const RETRY_MILLISECONDS = 2000;

/**
 * Receives the state of the emulator while the page is open. Reconnects after a restart of the emulator.
 * @param {Listener} listener
 */
export function follow(listener) {
  const tables = {
    /** @type {Map<string, UserRow>} */ users: new Map(),
    /** @type {Map<string, Session>} */ sessions: new Map(),
    /** @type {Map<string, Mail>} */ mails: new Map(),
    /** @type {Map<string, Delivery>} */ deliveries: new Map(),
    /** @type {Map<string, PendingFailure>} */ failures: new Map(),
    /** @type {Map<string, LoggedRequest>} */ requests: new Map(),
  };
  let heardAt = new Date();

  /**
   * @param {string} text
   * @param {boolean} isSnapshot
   */
  const receive = (text, isSnapshot) => {
    /** @type {Changes} */
    const changes = JSON.parse(text);
    if (isSnapshot) for (const table of Object.values(tables)) table.clear();
    apply(tables.users, changes.users);
    apply(tables.sessions, changes.sessions);
    apply(tables.mails, changes.mails);
    apply(tables.deliveries, changes.deliveries);
    apply(tables.failures, changes.failures);
    apply(tables.requests, changes.requests);
    heardAt = new Date();
    const ahead = changes.now - Date.now();
    const { endpoint } = changes;
    listener.connection(undefined);
    listener.changed(
      { ...tables, endpoint, now: () => Date.now() + ahead },
      isSnapshot ? undefined : changes,
    );
  };

  const connect = () => {
    const source = new EventSource('/api/live');
    source.addEventListener('snapshot', ({ data }) => receive(data, true));
    source.addEventListener('changes', ({ data }) => receive(data, false));
    source.addEventListener('error', () => {
      // The browser reconnects when a stream ends, but not after a response that is not a stream.
      if (source.readyState === EventSource.CLOSED) setTimeout(connect, RETRY_MILLISECONDS);
      listener.connection(heardAt);
    });
  };
  connect();
}

/**
 * @template {{ readonly id: string }} Row
 * @param {Map<string, Row>} table
 * @param {TableChanges<Row>} changes
 */
function apply(table, { put, gone }) {
  for (const id of gone) table.delete(id);
  for (const row of put) table.set(row.id, row);
}
