// @ts-check
import { Deliveries } from './deliveries.js';
import { byId } from './dom.js';
import { Endpoint } from './endpoint.js';
import { Failures, failureForm } from './failures.js';
import { follow } from './live.js';
import { Mails } from './mails.js';
import { announceNews } from './news.js';
import { html, render } from './preact.js';
import { Requests } from './requests.js';
import { eventForm } from './send-event.js';
import { Users, userForm } from './users.js';

/** @import { Model } from './live.js' */

const sections = {
  'mail-list': Mails,
  'user-list': Users,
  'endpoint-panel': Endpoint,
  'delivery-list': Deliveries,
  'failure-list': Failures,
  'request-list': Requests,
};
/** @type {Model | undefined} */
let model;

/** Draws the model. If the focused element disappears, the heading of its section gets the focus. */
function draw() {
  if (model === undefined) return;
  const focused = document.activeElement;
  const heading = focused?.closest('section')?.querySelector('h2');
  for (const [id, section] of Object.entries(sections)) drawSection(id, section);
  if (!focused?.isConnected) heading?.focus();
  const { mails, users, deliveries, requests } = model;
  for (const [name, { size }] of Object.entries({ mails, users, deliveries, requests })) {
    render(String(size), byId(`${name}-count`, HTMLSpanElement));
  }
  // The application receives the webhooks, so the origin of the webhook endpoint is the address of the application.
  const { url } = model.endpoint;
  render(
    url && html`<a href=${new URL(url).origin}>Open the application</a>`,
    byId('application', HTMLParagraphElement),
  );
}

/**
 * @param {string} id
 * @param {unknown} section
 */
function drawSection(id, section) {
  if (model) render(html`<${section} ...${model} />`, byId(id, HTMLDivElement));
}

eventForm();
userForm();
failureForm();
// Updates the countdown to the next attempt.
setInterval(() => drawSection('delivery-list', Deliveries), 1000);
follow({
  changed(next, news) {
    model = next;
    draw();
    if (news) announceNews(news);
  },
  connection(lostSince) {
    const connection = byId('connection', HTMLParagraphElement);
    const stale = byId('stale', HTMLDivElement);
    connection.dataset['state'] = lostSince ? 'bad' : 'good';
    render(lostSince ? 'Reconnecting…' : 'Live', connection);
    stale.hidden = lostSince === undefined;
    const since = lostSince?.toLocaleTimeString();
    render(
      since &&
        `The emulator does not respond. This page shows the emulator's state at ${since} and updates when the emulator is back.`,
      stale,
    );
  },
});
