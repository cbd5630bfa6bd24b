// @ts-check
import { announce } from './announce.js';
import { element, unseen } from './dom.js';

const COPIED_MILLISECONDS = 2500;

/**
 * A button that does something, with the error beside it if that fails. A second press while it runs does nothing.
 * @param {string} label
 * @param {string} about what it acts on, for a screen reader
 * @param {() => Promise<unknown>} run
 */
export function actionButton(label, about, run) {
  const button = element('button', { class: 'button small', type: 'button' }, label, unseen(` ${about}`));
  const error = element('span', { class: 'error', role: 'alert' });
  button.addEventListener('click', () => void attempt(button, error, run));
  return element('span', { class: 'action' }, button, error);
}

/**
 * A button that asks before it does something that cannot be undone. Escape says no.
 * @param {string} label
 * @param {string} about
 * @param {string} question
 * @param {() => Promise<unknown>} run
 */
export function destructiveButton(label, about, question, run) {
  const ask = element('button', { class: 'button small', type: 'button' }, label, unseen(` ${about}`));
  const yes = element(
    'button',
    { class: 'button small danger', type: 'button' },
    label,
    unseen(` ${about}, really`),
  );
  const no = element('button', { class: 'button small', type: 'button' }, 'Cancel');
  const error = element('span', { class: 'error', role: 'alert' });
  const confirm = element(
    'span',
    { class: 'confirm', role: 'group', 'aria-label': question, hidden: true },
    question,
    yes,
    no,
  );
  const action = element('span', { class: 'action' }, ask, confirm, error);

  /** @param {boolean} open */
  const show = (open) => {
    ask.hidden = open;
    confirm.hidden = !open;
    (open ? no : ask).focus();
  };
  ask.addEventListener('click', () => show(true));
  no.addEventListener('click', () => show(false));
  action.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && !confirm.hidden) show(false);
  });
  yes.addEventListener('click', async () => {
    await attempt(yes, error, run);
    if (action.isConnected) show(false);
  });
  return action;
}

/**
 * A button that copies a text, which may have to be made first, and says so. Where the browser does not let it,
 * the text is shown, ready to be copied by hand.
 * @param {string} label
 * @param {string} about
 * @param {() => string | Promise<string>} text
 */
export function copyButton(label, about, text) {
  const caption = element('span', {}, label);
  const button = element('button', { class: 'button small', type: 'button' }, caption, unseen(` ${about}`));
  const error = element('span', { class: 'error', role: 'alert' });
  const action = element('span', { class: 'action' }, button, error);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const copy = async () => {
    const value = await text();
    action.querySelector('input')?.remove();
    try {
      await navigator.clipboard.writeText(value);
    } catch {
      const field = element('input', {
        class: 'code',
        readonly: true,
        value,
        'aria-label': `${about}, to copy by hand`,
      });
      action.append(field);
      field.select();
      return;
    }
    caption.textContent = 'Copied';
    announce(`Copied ${about}`);
    clearTimeout(timer);
    timer = setTimeout(() => {
      caption.textContent = label;
    }, COPIED_MILLISECONDS);
  };
  button.addEventListener('click', () => void attempt(button, error, copy));
  return action;
}

/**
 * Runs something once at a time on behalf of a control, and shows why it failed.
 * @param {HTMLElement} control
 * @param {HTMLElement} error
 * @param {() => Promise<unknown>} run
 */
export async function attempt(control, error, run) {
  if (control.ariaBusy === 'true') return;
  control.ariaBusy = 'true';
  error.textContent = '';
  try {
    await run();
  } catch (reason) {
    error.textContent = reason instanceof Error ? reason.message : String(reason);
  } finally {
    control.ariaBusy = 'false';
  }
}
