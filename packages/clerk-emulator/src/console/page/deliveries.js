// @ts-check
import { ActionButton, CopyButton, DestructiveButton } from './actions.js';
import { announce } from './announce.js';
import { call } from './api.js';
import { Moment } from './dom.js';
import { List } from './list.js';
import { html, useMemo, useState } from './preact.js';

/** @import { Delivery, DeliveryAttempt } from '../../instance/data' */
/** @import { Model } from './live.js' */

const LABELS = { pending: 'Pending', delivered: 'Delivered', failed: 'Failed' };
const STATES = { pending: 'waiting', delivered: 'good', failed: 'bad' };
const EMPTY =
  'No deliveries yet. Create a user or send an event: each delivery is listed with what the endpoint answered.';

/**
 * The deliveries, of all types or of one, each of which opens to its attempts and its payload.
 * @param {Model} model
 */
export function Deliveries(model) {
  const [chosen, choose] = useState('');
  const all = [...model.deliveries.values()];
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { type } of all) counts.set(type, 1 + (counts.get(type) ?? 0));
  const only = counts.has(chosen) ? chosen : '';
  const rows = all.filter(({ type }) => only === '' || type === only);
  const view = (/** @type {Delivery} */ delivery) =>
    html`<${DeliveryItem} key=${delivery.id} delivery=${delivery} note=${whatNext(delivery, model)} />`;
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
          <${DestructiveButton} label="Clear deliveries" question="Clear all that are done?" run=${clear} />
        </div>
      `
    }
    <${List} name="deliveries" empty=${EMPTY} pageLength=${25} rows=${rows} view=${view} />
  `;
}

async function clear() {
  const { cleared } = await call('DELETE', '/api/deliveries');
  announce(cleared === 1 ? 'Cleared 1 delivery' : `Cleared ${cleared} deliveries`);
}

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
function deliveryView({ id, type, status, body, attempts, createdAt }, note, isOpened, open) {
  const last = attempts.at(-1);
  const redeliver = () => call('POST', `/api/deliveries/${id}/redeliver`);
  return html`
    <li>
      <details onToggle=${open}>
        <summary class="summary">
          <span class="status" data-state=${STATES[status]}>${LABELS[status]}</span>
          <code class="type">${type}</code>
          <span class="time soft"><${Moment} at=${createdAt} /></span>
          <span class="subject soft">${subjectOf(body)}</span>
          <span class="outcome row soft">
            ${last && html`<span class="status" data-state=${isSuccess(last) ? 'plain' : 'bad'}>${answerOf(last)}</span>`}
            ${note && html`<span>${note}</span>`}
          </span>
        </summary>
        <div class="delivery-body stack loose">
          <p class="id row apart"><code>${id}</code><${CopyButton} label="Copy" about="message id ${id}" text=${() => id} /></p>
          <h3 class="soft">Attempts</h3>
          ${last ? html`<ol class="stack">${attempts.map(attemptView)}</ol>` : html`<p class="soft">None so far.</p>`}
          <h3 class="soft">Payload</h3>
          <pre class="code" tabindex="0" role="region" aria-label="Payload of ${type}">
            ${isOpened && JSON.stringify(JSON.parse(body), null, 2)}
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
 * Whom or what an event is about: its address, or its id. The data may be anything that somebody sent.
 * @param {string} body
 * @returns {string}
 */
function subjectOf(body) {
  const { data } = JSON.parse(body);
  const subject = data?.email_addresses?.[0]?.email_address ?? data?.id;
  return typeof subject === 'string' ? subject : '';
}

/**
 * How often it was tried, whether that it was tried again has failed, and when it will be again.
 * @param {Delivery} delivery
 * @param {Model} model
 */
function whatNext({ status, attempts, nextTryAt }, { endpoint, now }) {
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
function answerOf({ status }) {
  return status === null ? 'no answer' : `HTTP ${status}`;
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
        <span class="status" data-state=${isSuccess(attempt) ? 'good' : 'bad'}>${answerOf(attempt)}</span>
        <span class="soft"><${Moment} at=${attempt.at} /> · ${Math.round(attempt.durationMilliseconds)} ms</span>
      </p>
      <p class="soft"><code>${attempt.answer || '(empty answer)'}</code></p>
    </li>
  `;
}
