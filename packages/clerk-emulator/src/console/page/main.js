// @ts-check
import { Action, byId, call, onSubmit } from './controls.js';
import { Clients, Mails, Requests, Users } from './lists.js';
import { html, render } from './preact.js';
import { Deliveries, Endpoint, eventForm } from './webhooks.js';

/** @import { State } from '../state' */

const RETRY_MS = 2000;
const sections = {
  'mail-list': Mails,
  'user-list': Users,
  'client-list': Clients,
  'endpoint-panel': Endpoint,
  'delivery-list': Deliveries,
  'request-list': Requests,
};

const filter = byId('filter', HTMLInputElement);

/**
 * Returns a state whose lists have only the rows that contain the text of the filter.
 * @param {State} state
 */
function filtered(state) {
  const text = filter.value.toLowerCase();
  const hasText = (/** @type {unknown} */ row) => JSON.stringify(row).toLowerCase().includes(text);
  const lists = Object.entries(state).filter(([, rows]) => Array.isArray(rows));
  return { ...state, ...Object.fromEntries(lists.map(([name, rows]) => [name, rows.filter(hasText)])) };
}

/** @param {State} state */
function draw(state) {
  filter.oninput = () => draw(state);
  for (const [id, section] of Object.entries(sections)) {
    render(html`<${section} ...${filtered(state)} />`, byId(id, HTMLDivElement));
  }
  for (const [name, count] of Object.entries(state.counts)) {
    byId(`${name}-count`, HTMLSpanElement).textContent = String(count);
  }
  // The application receives the webhooks, so the origin of the webhook endpoint is the address of the application.
  const { url } = state.endpoint;
  const link = url && html`<a href=${new URL(url).origin}>Open the application</a>`;
  render(link, byId('application', HTMLParagraphElement));
}

/** @param {boolean} isLive */
function showConnection(isLive) {
  const connection = byId('connection', HTMLParagraphElement);
  connection.dataset['state'] = isLive ? 'good' : 'bad';
  connection.textContent = isLive ? 'Live' : 'Reconnecting…';
  byId('stale', HTMLDivElement).hidden = isLive;
}

/** Shows the state of the emulator. Reconnects after a restart of the emulator. */
function follow() {
  const source = new EventSource('/api/state');
  source.addEventListener('message', ({ data }) => {
    showConnection(true);
    draw(JSON.parse(data));
  });
  source.addEventListener('error', () => {
    showConnection(false);
    // The browser reconnects when a stream ends, but not after a response that is not a stream.
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, RETRY_MS);
  });
}

onSubmit('new-user', ({ email, password }) =>
  call('POST', '/v1/users', {
    email_address: [email],
    password,
    skip_password_requirement: password === '',
  }),
);
const reset = () => call('POST', '/v1/emulator/reset');
const question = 'Return to the settings and the data of the start? All other data is deleted.';
render(
  html`<${Action} label="Reset" about="the emulator" question=${question} run=${reset} />`,
  byId('reset', HTMLDivElement),
);
eventForm();
follow();
