// @ts-check
import { CopyButton } from './actions.js';
import { Moment } from './dom.js';
import { List } from './list.js';
import { html } from './preact.js';

/** @import { Model } from './live.js' */

const EMPTY = 'No mail yet. Codes for sign-up and sign-in appear here.';

/**
 * The mails that a real provider would have sent, each with its code.
 * @param {Model} model
 */
export function Mails({ mails }) {
  return html`<${List} name="mails" empty=${EMPTY} pageLength=${5} rows=${[...mails.values()]} view=${mail} />`;
}

/** @param {import('../../instance/data').Mail} mail */
function mail({ id, code, purpose, to, sentAt }) {
  return html`
    <li class="mail row apart" key=${id}>
      <code class="mail-code">${code}</code>
      <${CopyButton} label="Copy" about="code for ${to}" text=${() => code} />
      <p class="row apart soft"><b>${to}</b><span>${purpose} · <${Moment} at=${sentAt} /></span></p>
    </li>
  `;
}
