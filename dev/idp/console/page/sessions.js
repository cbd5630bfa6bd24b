// @ts-check
import { CopyButton, DestructiveButton } from './actions.js';
import { call } from './api.js';
import { moment } from './dom.js';
import { List } from './list.js';
import { html } from './preact.js';

/** @import { Session } from '../../data' */
/** @import { Model } from './live.js' */

const EMPTY = 'No session. Start one here, or sign in as this user in the application.';

/**
 * The sessions of one user, those that are over too.
 * @param {{ userId: string, model: Model }} props
 */
export function Sessions({ userId, model }) {
  const rows = [...model.sessions.values()].filter((session) => session.userId === userId);
  const view = (/** @type {Session} */ session) => sessionView(session, model.now());
  return html`<${List} name="sessions" empty=${EMPTY} pageLength=${3} rows=${rows} view=${view} />`;
}

/**
 * @param {Session} session
 * @param {number} now
 */
function sessionView({ id, status, createdAt, expireAt }, now) {
  const state = status === 'active' && expireAt <= now ? 'expired' : status;
  const token = async () => (await call('POST', `/api/sessions/${id}/token`)).token;
  const revoke = () => call('POST', `/api/sessions/${id}/revoke`);
  return html`
    <li class="session" key=${id}>
      <p>
        <span class="status" data-state=${state === 'active' ? 'good' : 'over'}>${state}</span>
        <span class="soft">started ${moment(createdAt)}</span>
      </p>
      <code>${id}</code>
      ${
        state === 'active' &&
        html`
          <div class="actions">
            <${CopyButton} label="Copy token" about="of session ${id}" text=${token} />
            <${DestructiveButton} label="Revoke" about="session ${id}" question="Revoke this session?" run=${revoke} />
          </div>
        `
      }
    </li>
  `;
}
