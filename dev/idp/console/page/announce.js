// @ts-check
import { byId, element } from './dom.js';

const REMEMBERED = 20;

/**
 * Has a screen reader say something when it next falls silent.
 * @param {string} text
 */
export function announce(text) {
  const log = byId('announcements', HTMLDivElement);
  log.append(element('p', {}, text));
  while (log.childElementCount > REMEMBERED) log.firstElementChild?.remove();
}
