// @ts-check
import { ActionButton, CopyButton, DestructiveButton } from './actions.js';
import { call } from './api.js';
import { byId, Moment } from './dom.js';
import { onSubmit } from './forms.js';
import { List } from './list.js';
import { html, useRef } from './preact.js';
import { Sessions } from './sessions.js';

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
const EMPTY = 'No users yet. Create one here, or sign up in the application.';

/** Sets up the form that creates a user. The form suggests an e-mail address. */
export function userForm() {
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

/**
 * The users and their sessions.
 * @param {Model} model
 */
export function Users(model) {
  const view = (/** @type {UserRow} */ user) => html`<${User} key=${user.id} user=${user} model=${model} />`;
  return html`<${List} name="users" empty=${EMPTY} pageLength=${20} rows=${[...model.users.values()]} view=${view} />`;
}

/** @param {{ user: UserRow, model: Model }} props */
function User({ user: { id, email, createdAt, hasPassword }, model }) {
  const sessions = useRef(/** @type {HTMLDetailsElement | null} */ (null));
  const start = async () => {
    await call('POST', `/api/users/${id}/sessions`);
    if (sessions.current) sessions.current.open = true;
  };
  const remove = () => call('DELETE', `/api/users/${id}`);
  return html`
    <li class="user stack">
      <h3>${email}</h3>
      <p class="id row apart"><code>${id}</code><${CopyButton} label="Copy" about="id of ${email}" text=${() => id} /></p>
      <p class="soft">Created <${Moment} at=${createdAt} /> · ${hasPassword ? 'has a password' : 'no password'}</p>
      <${Sessions} place=${sessions} userId=${id} model=${model} />
      <div class="row">
        <${ActionButton} label="New session" about="for ${email}" run=${start} />
        <${DestructiveButton} label="Delete" about=${email} question="Delete this user?" run=${remove} />
      </div>
    </li>
  `;
}
