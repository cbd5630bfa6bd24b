// @ts-check
import { Action, byId, call, List, onSubmit } from './controls.js';
import { client, mail, request, user } from './lists.js';
import { html, render } from './preact.js';
import { delivery, Endpoint, eventForm } from './webhooks.js';

/** @import { State } from '../state' */

const RETRY_MS = 2000;
const filter = byId('filter', HTMLInputElement);

/**
 * Returns the rows that contain the text of the filter.
 * @template Row
 * @param {readonly Row[]} rows
 */
const filtered = (rows) =>
  rows.filter((row) => JSON.stringify(row).toLowerCase().includes(filter.value.toLowerCase()));

/**
 * Returns the contents of the page by the ids of their elements.
 * @param {State} state
 */
const contents = ({ mails, users, clients, deliveries, requests, endpoint }) => ({
  'mail-list': html`<${List} name="mails" rows=${filtered(mails)} view=${mail} empty="No mail yet. Codes for sign-up and sign-in appear here." />`,
  'user-list': html`<${List} name="users" rows=${filtered(users)} view=${user} empty="No users yet. Create one here, or sign up in the application." />`,
  'client-list': html`<${List} name="clients" rows=${filtered(clients)} view=${client} empty="No OAuth clients yet. MCP clients register themselves." />`,
  'endpoint-panel': html`<${Endpoint} ...${endpoint} />`,
  'delivery-list': html`<${List} name="deliveries" rows=${filtered(deliveries)} view=${delivery(endpoint)} empty="No deliveries yet. Create a user or send an event." />`,
  'request-list': html`<${List} name="requests" rows=${filtered(requests)} view=${request} empty="No requests yet. Requests of SDKs appear here." />`,
});

/** @param {State} state */
function draw(state) {
  filter.oninput = () => draw(state);
  for (const [id, view] of Object.entries(contents(state))) render(view, byId(id, HTMLDivElement));
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
