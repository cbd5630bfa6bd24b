// @ts-check
import { html, useMemo } from './preact.js';

/**
 * Returns the element with an id. Throws if there is no such element of that kind.
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

const clockTime = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const dayAndTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/**
 * Shows a point in time, given in milliseconds since the epoch. Includes the date unless the time is today.
 * @param {{ at: number }} props
 */
export function Moment({ at }) {
  return useMemo(() => {
    const date = new Date(at);
    const isToday = date.toDateString() === new Date().toDateString();
    const text = (isToday ? clockTime : dayAndTime).format(date);
    return html`<time datetime=${date.toISOString()} title=${dayAndTime.format(date)}>${text}</time>`;
  }, [at]);
}
