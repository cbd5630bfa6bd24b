// @ts-check
import { copyButton, destructiveButton } from './actions.js';
import { call } from './api.js';
import { element, moment, setText } from './dom.js';
import { liveList } from './list.js';

/** @import { Session } from '../../instance/data' */
/** @import { Model } from './live.js' */

/**
 * The sessions of one user, those that are over too.
 * @param {string} userId
 */
export function sessionList(userId) {
  const place = element('div');
  const render = liveList(place, {
    name: 'sessions',
    empty: 'No session. Start one here, or sign in as this user in the application.',
    pageLength: 3,
    view: sessionView,
  });
  return {
    element: place,
    /** @param {Model} model */
    update(model) {
      const sessions = [...model.sessions.values()].filter((session) => session.userId === userId);
      render(sessions, model);
    },
  };
}

/** @param {Session} session */
function sessionView({ id, createdAt }) {
  const status = element('span', { class: 'status' });
  const actions = element(
    'div',
    { class: 'actions' },
    copyButton(
      'Copy token',
      `of session ${id}`,
      async () => (await call('POST', `/api/sessions/${id}/token`)).token,
    ),
    destructiveButton('Revoke', `session ${id}`, 'Revoke this session?', () =>
      call('POST', `/api/sessions/${id}/revoke`),
    ),
  );
  const item = element(
    'li',
    { class: 'session' },
    element('p', {}, status, element('span', { class: 'soft' }, 'started ', moment(createdAt))),
    element('code', {}, id),
    actions,
  );
  return {
    element: item,
    /**
     * @param {Session} session
     * @param {Model} model
     */
    update(session, model) {
      const state =
        session.status === 'active' && session.expireAt <= model.now() ? 'expired' : session.status;
      setText(status, state);
      status.dataset['state'] = state === 'active' ? 'good' : 'over';
      if (state !== 'active') actions.remove();
    },
  };
}
