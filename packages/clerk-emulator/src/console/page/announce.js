// @ts-check
import { byId } from './dom.js';

const REMEMBERED = 20;

/**
 * Announces a text to screen readers.
 * @param {string} text
 */
export function announce(text) {
  const log = byId('announcements', HTMLDivElement);
  const sentence = document.createElement('p');
  sentence.textContent = text;
  log.append(sentence);
  while (log.childElementCount > REMEMBERED) log.firstElementChild?.remove();
}
