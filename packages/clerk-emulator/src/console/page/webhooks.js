// @ts-check
import { Action, attempt, byId, Copy, call, Moment, onSubmit } from './controls.js';
import { html } from './preact.js';

/** @import { Delivery, DeliveryAttempt } from '../../instance/webhook-attempt' */
/** @import { State } from '../state' */

const STATES = { pending: 'waiting', delivered: 'good', failed: 'bad' };

/**
 * The webhook endpoint, and settings that make its deliveries wait, repeat or have invalid signatures.
 * @param {State['endpoint']} endpoint
 */
export function Endpoint({ url, paused, signatureBroken, delaySeconds, copies }) {
  return html`
    <p><code>${url ?? 'No endpoint is set. Events wait until there is one.'}</code></p>
    <div class="row switches">
      <${Switch} label="Pause deliveries" isOn=${paused} change=${{ paused: !paused }} />
      <${Switch} label="Break signatures" isOn=${signatureBroken} change=${{ signatureBroken: !signatureBroken }} />
      <${Amount} label="Delay in seconds" name="delaySeconds" value=${delaySeconds} min="0" />
      <${Amount} label="Deliveries per event" name="copies" value=${copies} min="1" />
    </div>
  `;
}

/** @param {{ label: string, isOn: boolean, change: Record<string, boolean> }} props */
const Switch = ({ label, isOn, change }) => html`
  <span class="action row">
    <button class="switch" type="button" role="switch" aria-checked=${String(isOn)} onClick=${changing(() => change)}>
      <span class="track" aria-hidden="true" />${label}
    </button>
    <span class="error" role="alert" />
  </span>
`;

/**
 * A number that is saved when it changes. What a user types stays if the page shows another state meanwhile.
 * @param {{ label: string, name: string, value: number, min: string }} props
 */
function Amount({ label, name, value, min }) {
  const change = changing(({ valueAsNumber }) => ({ [name]: valueAsNumber || Number(min) }));
  return html`
    <label class="action row">
      ${label}<input class="amount" type="number" min=${min} key=${value} defaultValue=${value} onChange=${change} />
      <span class="error" role="alert" />
    </label>
  `;
}

/**
 * Returns a listener that changes settings of the endpoint.
 * @param {(control: HTMLInputElement) => Record<string, unknown>} read
 */
const changing =
  (read) =>
  (/** @type {{ currentTarget: HTMLInputElement }} */ { currentTarget }) =>
    attempt(currentTarget, () => call('PATCH', '/api/endpoint', read(currentTarget)));

/**
 * Returns the view of a webhook delivery. Its details are its attempts and its payload.
 * @param {State['endpoint']} endpoint
 */
export const delivery = (endpoint) => (/** @type {Delivery} */ row) => {
  const { id, type, status, body, attempts, createdAt } = row;
  const last = attempts.at(-1);
  const note = nextStep(row, endpoint);
  const redeliver = () => call('POST', `/api/deliveries/${id}/redeliver`);
  return html`
    <li key=${id}>
      <details>
        <summary class="summary">
          <span class="status" data-state=${STATES[status]}>${status}</span>
          <code class="type">${type}</code>
          <span class="time soft"><${Moment} at=${createdAt} /></span>
          <span class="subject soft">${String(JSON.parse(body).data.id ?? '')}</span>
          <span class="outcome row soft">
            ${last && outcome(last)} ${attempts.length > 1 && `${attempts.length} attempts`} ${note}
          </span>
        </summary>
        <div class="delivery-body stack loose">
          <p class="id row apart"><code>${id}</code></p>
          <h4 class="soft">Attempts</h4>
          <ol class="stack">${attempts.map(attemptItem)}</ol>
          <h4 class="soft">Payload</h4>
          <pre class="code" tabindex="0" role="region" aria-label="Payload of ${type}">
            ${JSON.stringify(JSON.parse(body), null, 2)}
          </pre>
          <div class="row">
            <${Action} label="Redeliver" about="${type} ${id}" run=${redeliver} />
            <${Copy} label="Copy payload" about="of ${id}" text=${() => body} />
          </div>
        </div>
      </details>
    </li>
  `;
};

/**
 * @param {Delivery} delivery
 * @param {State['endpoint']} endpoint
 */
function nextStep({ nextTryAt }, { url, paused }) {
  if (nextTryAt === null) return '';
  if (url === null) return 'waits for an endpoint';
  return paused ? 'waits while paused' : html`next attempt <${Moment} at=${nextTryAt} />`;
}

/** @param {DeliveryAttempt} attempt */
function outcome({ status }) {
  const isSuccess = status !== null && status >= 200 && status < 300;
  const text = status === null ? 'no response' : `HTTP ${status}`;
  return html`<span class="status" data-state=${isSuccess ? 'good' : 'bad'}>${text}</span>`;
}

/** @param {DeliveryAttempt} attempt */
const attemptItem = (attempt) => html`
  <li>
    <p class="row">
      ${outcome(attempt)}
      <span class="soft"><${Moment} at=${attempt.at} /> · ${Math.round(attempt.durationMilliseconds)} ms</span>
    </p>
    <p class="soft"><code>${attempt.answer || '(empty body)'}</code></p>
  </li>
`;

/** Sets up the form that sends a webhook event. It starts with an example, which the user can edit. */
export function eventForm() {
  const example = byId('new-event-example', HTMLSelectElement);
  const data = byId('new-event-data', HTMLTextAreaElement);
  const fill = () =>
    attempt(example, async () => {
      data.value = JSON.stringify(await call('GET', `/api/example-events/${example.value}`), null, 2);
    });
  example.addEventListener('change', fill);
  void fill();
  onSubmit('new-event', ({ type, data: text = '' }) =>
    call('POST', '/api/deliveries', { type, data: JSON.parse(text) }),
  );
}
