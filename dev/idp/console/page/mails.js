// @ts-check
import { copyButton } from './actions.js';
import { byId, element, moment } from './dom.js';
import { liveList } from './list.js';

/** @import { Mail } from '../../instance/data' */
/** @import { Model } from './live.js' */

/** The mails that a real provider would have sent, each with the code that somebody waits for. */
export function mailSection() {
  const render = liveList(byId('mail-list', HTMLDivElement), {
    name: 'mails',
    empty: 'No mail yet. When somebody signs up, or signs in by mailed code, the code appears here.',
    pageLength: 5,
    view: mailView,
  });
  /** @param {Model} model */
  return (model) => render([...model.mails.values()], model);
}

/** @param {Mail} mail */
function mailView({ code, purpose, to, sentAt }) {
  const item = element(
    'li',
    { class: 'mail' },
    element('code', { class: 'mail-code' }, code),
    copyButton('Copy', `code for ${to}`, () => code),
    element('p', {}, element('b', {}, to), element('span', {}, `${purpose} · `, moment(sentAt))),
  );
  return { element: item, update: () => {} };
}
