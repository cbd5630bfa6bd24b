// @ts-check
import { Action, Copy, call, List, Moment } from './controls.js';
import { html } from './preact.js';

/** @import { State, UserRow } from '../state' */

/**
 * The mails that Clerk would have sent, each with its code.
 * @param {State} state
 */
export function Mails({ mails }) {
  const view = (/** @type {State['mails'][number]} */ { id, code, purpose, to, sentAt }) => html`
    <li class="mail row apart" key=${id}>
      <code class="mail-code">${code}</code>
      <${Copy} label="Copy" about="code for ${to}" text=${() => code} />
      <p class="row apart soft"><b>${to}</b><span>${purpose} · <${Moment} at=${sentAt} /></span></p>
    </li>
  `;
  return html`<${List} name="mails" rows=${mails} view=${view} empty="No mail yet. Codes for sign-up and sign-in appear here." />`;
}

/**
 * The users and their sessions.
 * @param {State} state
 */
export const Users = ({ users }) =>
  html`<${List} name="users" rows=${users} view=${user} empty="No users yet. Create one here, or sign up in the application." />`;

/** @param {UserRow} user */
function user({ id, email, createdAt, hasPassword, sessions }) {
  const name = email ?? id;
  const start = () => call('POST', '/v1/sessions', { user_id: id });
  const remove = () => call('DELETE', `/v1/users/${id}`);
  const active = sessions.filter(({ status }) => status === 'active').length;
  return html`
    <li class="user stack" key=${id}>
      <h3>${name}</h3>
      <p class="id row apart"><code>${id}</code><${Copy} label="Copy" about="id of ${name}" text=${() => id} /></p>
      <p class="soft">Created <${Moment} at=${createdAt} /> · ${hasPassword ? 'has a password' : 'no password'}</p>
      <details class="fold">
        <summary>Sessions: ${active} active</summary>
        <${List} name="sessions" rows=${sessions} view=${session} empty="No session yet." />
      </details>
      <div class="row">
        <${Action} label="New session" about="for ${name}" run=${start} />
        <${Action} label="Delete" about=${name} question="Delete ${name}?" run=${remove} />
      </div>
    </li>
  `;
}

/** @param {UserRow['sessions'][number]} session */
function session({ id, status, createdAt }) {
  const token = async () => (await call('POST', `/v1/sessions/${id}/tokens`)).jwt;
  const revoke = () => call('POST', `/v1/sessions/${id}/revoke`);
  return html`
    <li class="session stack" key=${id}>
      <p class="row apart">
        <span class="status" data-state=${status === 'active' ? 'good' : 'over'}>${status}</span>
        <span class="soft">started <${Moment} at=${createdAt} /></span>
      </p>
      <code>${id}</code>
      ${
        status === 'active' &&
        html`
          <div class="row">
            <${Copy} label="Copy token" about="of session ${id}" text=${token} />
            <${Action} label="Revoke" about="session ${id}" question="Revoke this session?" run=${revoke} />
          </div>
        `
      }
    </li>
  `;
}

/**
 * The OAuth clients that have registered themselves, and the consents of users.
 * @param {State} state
 */
export function Clients({ clients, consents }) {
  const consent = (/** @type {State['consents'][number]} */ { id, userId, request, createdAt }) => html`
    <p class="soft" key=${id}>Consent of ${userId}: ${request.scope.join(', ')} · <${Moment} at=${createdAt} /></p>
  `;
  const view = (/** @type {State['clients'][number]} */ { id, name }) => html`
    <li class="user stack" key=${id}>
      <h3>${name}</h3>
      <code>${id}</code>
      ${consents.filter(({ clientId }) => clientId === id).map(consent)}
      <${Action} label="Delete" about=${name} question="Delete ${name}?" run=${() => call('DELETE', `/api/clients/${id}`)} />
    </li>
  `;
  return html`<${List} name="clients" rows=${clients} view=${view} empty="No OAuth clients yet. MCP clients register themselves." />`;
}

/**
 * The last requests to the Frontend API and the Backend API.
 * @param {State} state
 */
export function Requests({ requests }) {
  const view = (/** @type {State['requests'][number]} */ request) => html`
    <li class="request row apart" key=${request.id}>
      <code>${request.method} ${request.path}</code>
      <span class="row soft">
        <span class="status" data-state=${request.status < 400 ? 'good' : 'bad'}>${request.status}</span>
        <span>${request.durationMilliseconds} ms · <${Moment} at=${request.at} /></span>
      </span>
    </li>
  `;
  return html`<${List} name="requests" rows=${requests} view=${view} empty="No requests yet. Requests of SDKs appear here." />`;
}
