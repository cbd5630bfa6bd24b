// @ts-check
import { Moment } from './dom.js';
import { List } from './list.js';
import { html } from './preact.js';

/** @import { LoggedRequest } from '../../instance/requests' */
/** @import { Model } from './live.js' */

const EMPTY = 'No requests yet. Requests of SDKs to the Frontend API and the Backend API appear here.';

/**
 * Shows the last requests to the Frontend API and the Backend API.
 * @param {Model} model
 */
export function Requests({ requests }) {
  return html`<${List} name="requests" empty=${EMPTY} pageLength=${10} rows=${[...requests.values()]} view=${request} />`;
}

/** @param {LoggedRequest} request */
function request({ id, method, path, status, at, durationMilliseconds }) {
  return html`
    <li class="request row apart" key=${id}>
      <code>${method} ${path}</code>
      <span class="row soft">
        <span class="status" data-state=${status !== null && status < 400 ? 'good' : 'bad'}>${status ?? 'disconnected'}</span>
        <span>${durationMilliseconds} ms · <${Moment} at=${at} /></span>
      </span>
    </li>
  `;
}
