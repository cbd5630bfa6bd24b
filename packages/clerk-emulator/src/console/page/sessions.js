// @ts-check
import { CopyButton, DestructiveButton } from './actions.js';
import { call } from './api.js';
import { Moment } from './dom.js';
import { List } from './list.js';
import { html, useMemo } from './preact.js';

/** @import { Session } from '../../instance/data' */
/** @import { Model } from './live.js' */
/** @typedef {{ readonly id: string, readonly createdAt: number, readonly state: Session['status'] }} Row */

const EMPTY = 'No active session. Choose New session, or sign in as this user in the application.';

/**
 * Shows the sessions of one user in a collapsed section, which contains a second collapsed section for ended sessions.
 * @param {{ place: object, userId: string, model: Model }} props
 */
export function Sessions({ place, userId, model }) {
  const now = model.now();
  const all = [...model.sessions.values()]
    .filter((session) => session.userId === userId)
    .map(({ id, createdAt, status, expireAt }) => {
      const state = status === 'active' && expireAt <= now ? 'expired' : status;
      return { id, createdAt, state };
    });
  return useMemo(() => folded(place, all), [all.map(({ id, state }) => `${id} ${state}`).join()]);
}

/**
 * @param {object} place
 * @param {readonly Row[]} all
 */
function folded(place, all) {
  const active = all.filter(({ state }) => state === 'active');
  const over = all.filter(({ state }) => state !== 'active');
  return html`
    <details class="fold" ref=${place}>
      <summary>Sessions: ${active.length || 'none'} active</summary>
      <${List} name="sessions" empty=${EMPTY} pageLength=${3} rows=${active} view=${session} />
      ${
        over.length > 0 &&
        html`
          <details class="fold">
            <summary>${over.length} ended</summary>
            <${List} name="sessions" pageLength=${3} rows=${over} view=${session} />
          </details>
        `
      }
    </details>
  `;
}

/** @param {Row} row */
function session({ id, createdAt, state }) {
  const token = async () => (await call('POST', `/api/sessions/${id}/token`)).token;
  const revoke = () => call('POST', `/api/sessions/${id}/revoke`);
  return html`
    <li class="session stack" key=${id}>
      <p class="row apart">
        <span class="status" data-state=${state === 'active' ? 'good' : 'over'}>${state}</span>
        <span class="soft">started <${Moment} at=${createdAt} /></span>
      </p>
      <code>${id}</code>
      ${
        state === 'active' &&
        html`
          <div class="row">
            <${CopyButton} label="Copy token" about="of session ${id}" text=${token} />
            <${DestructiveButton} label="Revoke" about="session ${id}" question="Revoke this session?" run=${revoke} />
          </div>
        `
      }
    </li>
  `;
}
