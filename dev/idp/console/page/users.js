// @ts-check
import { actionButton, copyButton, destructiveButton } from './actions.js';
import { call } from './api.js';
import { byId, element, moment, setText } from './dom.js';
import { onSubmit } from './forms.js';
import { liveList } from './list.js';
import { sessionList } from './sessions.js';

/** @import { UserRow } from '../changes' */
/** @import { Model } from './live.js' */

const NAMES = [
  'ada',
  'alan',
  'barbara',
  'donald',
  'edsger',
  'frances',
  'grace',
  'john',
  'katherine',
  'margaret',
];

/** The users, their sessions, and the form that makes another user. */
export function userSection() {
  userForm();
  const render = liveList(byId('user-list', HTMLDivElement), {
    name: 'users',
    empty: 'No users yet. Create one here, or sign up in the application.',
    pageLength: 20,
    view: userView,
  });
  /** @param {Model} model */
  return (model) => render([...model.users.values()], model);
}

function userForm() {
  const email = byId('new-user-email', HTMLInputElement);
  const password = byId('new-user-password', HTMLInputElement);
  const suggest = () => {
    const [pick = 0, ...rest] = crypto.getRandomValues(new Uint8Array(3));
    const suffix = rest.map((byte) => byte.toString(16).padStart(2, '0')).join('');
    email.value = `${NAMES[pick % NAMES.length]}-${suffix}@example.com`;
    password.value = '';
  };
  suggest();
  onSubmit(byId('new-user', HTMLFormElement), async () => {
    const secret = password.value === '' ? {} : { password: password.value };
    await call('POST', '/api/users', { email: email.value, ...secret });
    suggest();
  });
}

/** @param {UserRow} user */
function userView({ id, email, createdAt }) {
  const signIn = element('span');
  const sessions = sessionList(id);
  const item = element(
    'li',
    { class: 'user' },
    element('h3', {}, email),
    element(
      'p',
      { class: 'id' },
      element('code', {}, id),
      copyButton('Copy', `id of ${email}`, () => id),
    ),
    element('p', { class: 'soft' }, 'Created ', moment(createdAt), signIn),
    sessions.element,
    element(
      'div',
      { class: 'actions' },
      actionButton('New session', `for ${email}`, () => call('POST', `/api/users/${id}/sessions`)),
      destructiveButton('Delete', email, 'Delete this user?', () => call('DELETE', `/api/users/${id}`)),
    ),
  );
  return {
    element: item,
    /**
     * @param {UserRow} user
     * @param {Model} model
     */
    update(user, model) {
      setText(signIn, user.hasPassword ? ' · has a password' : ' · no password');
      sessions.update(model);
    },
  };
}
