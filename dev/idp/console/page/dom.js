// @ts-check

/**
 * Makes an element. Text is always text: nothing that came from outside becomes markup.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Readonly<Record<string, string | boolean>>} [attributes]
 * @param {(Node | string)[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'boolean') made.toggleAttribute(name, value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/**
 * The element that the page has under an id. Throws if it has none of that kind.
 * @template {HTMLElement} Kind
 * @param {string} id
 * @param {new () => Kind} kind
 * @returns {Kind}
 */
export function byId(id, kind) {
  const found = document.getElementById(id);
  if (found instanceof kind) return found;
  throw new Error(`The page has no #${id}`);
}

/**
 * Text that only a screen reader reads: what a button is about, where the eye sees it.
 * @param {string} text
 */
export function unseen(text) {
  return element('span', { class: 'visually-hidden' }, text);
}

const clockTime = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const dayAndTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/**
 * A moment: its time if it is today's, its date too if not.
 * @param {number} milliseconds
 */
export function moment(milliseconds) {
  const date = new Date(milliseconds);
  const isToday = date.toDateString() === new Date().toDateString();
  const text = (isToday ? clockTime : dayAndTime).format(date);
  return element('time', { datetime: date.toISOString(), title: dayAndTime.format(date) }, text);
}

/**
 * Puts text into an element unless it is there: what has not changed is neither drawn nor announced again.
 * @param {HTMLElement} target
 * @param {string} text
 */
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}
