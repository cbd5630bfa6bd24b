// @ts-check
import { ActionButton, CopyButton, DestructiveButton } from './actions.js';
import { announce } from './announce.js';
import { call } from './api.js';
import { Moment } from './dom.js';
import { List } from './list.js';
import { html, useMemo, useState } from './preact.js';

/** @import { Delivery, DeliveryAttempt } from '../../instance/data' */
/** @import { Model } from './live.js' */

/**
 * The deliveries about one user.
 * @typedef {object} Group
 * @property {string} name the user's e-mail address, or the id if the address is unknown, or {@link NO_USER}
 * @property {readonly Delivery[]} deliveries the deliveries in reverse order of the page, as {@link List} expects
 */

const LABELS = { pending: 'Pending', delivered: 'Delivered', failed: 'Failed' };
const STATES = { pending: 'waiting', delivered: 'good', failed: 'bad' };
const EMPTY = 'No deliveries yet. Create a user or send an event to see the response of the endpoint here.';
const NO_USER = 'Other events';
/** Maximum length of a `data:` URI in a shown payload. Longer URIs are shortened. */
const MAX_DATA_URI_LENGTH = 60;

/**
 * Shows the deliveries grouped by user, of all types or of one type. An expanded delivery shows its attempts and
 * its payload.
 * @param {Model} model
 */
export function Deliveries(model) {
  const [chosen, choose] = useState('');
  const all = [...model.deliveries.values()];
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { type } of all) counts.set(type, 1 + (counts.get(type) ?? 0));
  const only = counts.has(chosen) ? chosen : '';
  const groups = groupByUser(
    all.filter(({ type }) => only === '' || type === only),
    model,
  );
  const deliveryItem = (/** @type {Delivery} */ delivery) =>
    html`<${DeliveryItem} key=${delivery.id} delivery=${delivery} note=${nextStep(delivery, model)} />`;
  const view = (/** @type {Group} */ { name, deliveries }) => html`
    <li class="stack" key=${name}>
      <h3>${name}</h3>
      <${List} name="deliveries" empty=${EMPTY} pageLength=${10} rows=${deliveries} view=${deliveryItem} />
    </li>
  `;
  return html`
    ${
      all.length > 0 &&
      html`
        <div class="row apart">
          <select
            aria-label="Type of event"
            value=${only}
            onChange=${(/** @type {{ currentTarget: HTMLSelectElement }} */ event) => choose(event.currentTarget.value)}
          >
            <option value="">All types (${all.length})</option>
            ${[...counts].sort().map(([type, count]) => html`<option key=${type} value=${type}>${type} (${count})</option>`)}
          </select>
          <${DestructiveButton} label="Clear deliveries" question="Clear all finished deliveries?" run=${clear} />
        </div>
      `
    }
    <${List} name="groups" empty=${EMPTY} pageLength=${10} rows=${groups} view=${view} />
  `;
}

async function clear() {
  const { cleared } = await call('DELETE', '/api/deliveries');
  announce(cleared === 1 ? 'Cleared 1 delivery' : `Cleared ${cleared} deliveries`);
}

/**
 * Groups deliveries by user. On the page, the group with the newest delivery is at the top. In each group, all events about the
 * user are above all events about sessions. New sessions therefore do not push `user.created` down. Both returned orders are
 * the reverse of the page, because {@link List} shows the last row of an array at the top.
 * @param {readonly Delivery[]} all
 * @param {Model} model
 * @returns {Group[]}
 */
function groupByUser(all, { users }) {
  /** @type {Map<string, Delivery[]>} */
  const byUser = new Map();
  /** @type {Map<string, string>} */
  const addresses = new Map();
  for (const delivery of all) {
    const data = dataOf(delivery);
    const id =
      stringOf(data?.user_id) ?? (delivery.type.startsWith('user.') ? stringOf(data?.id) : undefined) ?? '';
    const group = byUser.get(id) ?? [];
    // Moves the group to the end, so that the groups are in the order of their newest deliveries.
    byUser.delete(id);
    byUser.set(id, group);
    group.push(delivery);
    const address = stringOf(data?.email_addresses?.[0]?.email_address);
    if (address !== undefined) addresses.set(id, address);
  }
  return [...byUser].map(([id, deliveries]) => ({
    name: (users.get(id)?.email ?? addresses.get(id) ?? id) || NO_USER,
    deliveries: deliveries.toSorted(
      (one, other) => Number(one.type.startsWith('user.')) - Number(other.type.startsWith('user.')),
    ),
  }));
}

/**
 * Returns the data of an event. It can be any JSON value, because a user of the console can send an event with any data.
 * @param {Delivery} delivery
 */
const dataOf = ({ body }) => JSON.parse(body).data;

/**
 * @param {unknown} value
 * @returns {string | undefined}
 */
const stringOf = (value) => (typeof value === 'string' ? value : undefined);

/** @param {{ delivery: Delivery, note: string }} props */
function DeliveryItem({ delivery, note }) {
  const [isOpened, setOpened] = useState(false);
  const open = () => setOpened(true);
  return useMemo(() => deliveryView(delivery, note, isOpened, open), [delivery, note, isOpened]);
}

/**
 * @param {Delivery} delivery
 * @param {string} note
 * @param {boolean} isOpened
 * @param {() => void} open
 */
function deliveryView(delivery, note, isOpened, open) {
  const { id, type, status, body, attempts, createdAt } = delivery;
  const last = attempts.at(-1);
  const redeliver = () => call('POST', `/api/deliveries/${id}/redeliver`);
  return html`
    <li>
      <details onToggle=${open}>
        <summary class="summary">
          <span class="status" data-state=${STATES[status]}>${LABELS[status]}</span>
          <code class="type">${type}</code>
          <span class="time soft"><${Moment} at=${createdAt} /></span>
          <span class="subject soft">${stringOf(dataOf(delivery)?.id) ?? ''}</span>
          <span class="outcome row soft">
            ${last && html`<span class="status" data-state=${isSuccess(last) ? 'good' : 'bad'}>${responseOf(last)}</span>`}
            ${note && html`<span>${note}</span>`}
          </span>
        </summary>
        <div class="delivery-body stack loose">
          <p class="id row apart"><code>${id}</code><${CopyButton} label="Copy" about="message id ${id}" text=${() => id} /></p>
          <h4 class="soft">Attempts</h4>
          ${last ? html`<ol class="stack">${attempts.map(attemptView)}</ol>` : html`<p class="soft">None so far.</p>`}
          <h4 class="soft">Payload</h4>
          <pre class="code" tabindex="0" role="region" aria-label="Payload of ${type}">
            ${isOpened && JSON.stringify(JSON.parse(body), shortenDataUri, 2)}
          </pre>
          <div class="row">
            <${ActionButton} label="Redeliver" about="${type} ${id}" run=${redeliver} />
            <${CopyButton} label="Copy payload" about="of ${id}" text=${() => body} />
          </div>
        </div>
      </details>
    </li>
  `;
}

/**
 * A replacer for `JSON.stringify` that shortens long `data:` URIs, such as profile images.
 * @param {string} _key
 * @param {unknown} value
 */
function shortenDataUri(_key, value) {
  if (typeof value !== 'string' || !value.startsWith('data:') || value.length <= MAX_DATA_URI_LENGTH)
    return value;
  return `${value.slice(0, value.indexOf(',') + 1).slice(0, MAX_DATA_URI_LENGTH)}… (${value.length} characters)`;
}

/**
 * Returns a text with the notes that apply: the number of attempts if there are several, a failed redelivery, and when the next
 * attempt starts.
 * @param {Delivery} delivery
 * @param {Model} model
 */
function nextStep({ status, attempts, nextTryAt }, { endpoint, now }) {
  const last = attempts.at(-1);
  const notes = [
    attempts.length > 1 && `${attempts.length} attempts`,
    status === 'delivered' && last && !isSuccess(last) && 'last redelivery failed',
    nextTryAt !== null && waitOf(nextTryAt, endpoint, now()),
  ];
  return notes.filter(Boolean).join(' · ');
}

/** @param {DeliveryAttempt} attempt */
export function isSuccess({ status }) {
  return status !== null && status >= 200 && status < 300;
}

/** @param {DeliveryAttempt} attempt */
function responseOf({ status }) {
  return status === null ? 'no response' : `HTTP ${status}`;
}

/**
 * @param {number} nextTryAt
 * @param {Model['endpoint']} endpoint
 * @param {number} now
 */
function waitOf(nextTryAt, endpoint, now) {
  if (endpoint.url === null) return 'waits for an endpoint';
  if (endpoint.paused) return 'waits while paused';
  const seconds = Math.ceil((nextTryAt - now) / 1000);
  return seconds <= 0 ? 'sending' : `next try in ${duration(seconds)}`;
}

/** @param {number} seconds */
function duration(seconds) {
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

/** @param {DeliveryAttempt} attempt */
function attemptView(attempt) {
  return html`
    <li>
      <p class="row">
        <span class="status" data-state=${isSuccess(attempt) ? 'good' : 'bad'}>${responseOf(attempt)}</span>
        <span class="soft"><${Moment} at=${attempt.at} /> · ${Math.round(attempt.durationMilliseconds)} ms</span>
      </p>
      <p class="soft"><code>${attempt.answer || '(empty body)'}</code></p>
    </li>
  `;
}
