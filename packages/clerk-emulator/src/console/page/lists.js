// @ts-check
import { Action, Copy, call, List, Moment } from './controls.js';
import { html } from './preact.js';

/** @import { State } from '../state' */

/**
 * A mail that Clerk would have sent, with its code.
 * @param {State['mails'][number]} mail
 */
export const mail = ({ id, code, purpose, to, sentAt }) => html`
  <li class="mail row apart" key=${id}>
    <code class="mail-code">${code}</code>
    <${Copy} label="Copy" about="code for ${to}" text=${() => code} />
    <p class="row apart soft"><b>${to}</b><span>${purpose} · <${Moment} at=${sentAt} /></span></p>
  </li>
`;

/** @param {State['users'][number]} user */
export function user({ id, email, createdAt, hasPassword, sessions }) {
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

/** @param {State['users'][number]['sessions'][number]} session */
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
 * An OAuth client that has registered itself, and the consents of users.
 * @param {State['clients'][number]} client
 */
export const client = ({ id, name, consents }) => html`
  <li class="user stack" key=${id}>
    <h3>${name}</h3>
    <code>${id}</code>
    ${consents.map(
      ({ userId, scope, createdAt }) => html`
        <p class="soft">Consent of ${userId}: ${scope.join(', ')} · <${Moment} at=${createdAt} /></p>
      `,
    )}
    <${Action} label="Delete" about=${name} question="Delete ${name}?" run=${() => call('DELETE', `/api/clients/${id}`)} />
  </li>
`;

/**
 * A request to the Frontend API or the Backend API.
 * @param {State['requests'][number]} request
 */
export const request = ({ id, method, path, status, durationMilliseconds, at }) => html`
  <li class="request row apart" key=${id}>
    <code>${method} ${path}</code>
    <span class="row soft">
      <span class="status" data-state=${status < 400 ? 'good' : 'bad'}>${status}</span>
      <span>${durationMilliseconds} ms · <${Moment} at=${at} /></span>
    </span>
  </li>
`;
