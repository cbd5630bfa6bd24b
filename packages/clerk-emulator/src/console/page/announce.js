// @ts-check
import { byId } from './dom.js';

const REMEMBERED = 20;

/**
 * Has a screen reader say something when it next falls silent.
 * @param {string} text
 */
export function announce(text) {
  const log = byId('announcements', HTMLDivElement);
  const sentence = document.createElement('p');
  sentence.textContent = text;
  log.append(sentence);
  while (log.childElementCount > REMEMBERED) log.firstElementChild?.remove();
}
