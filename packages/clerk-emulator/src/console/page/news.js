// @ts-check
import { announce } from './announce.js';
import { isSuccess } from './deliveries.js';

/** @import { Changes } from '../changes' */

/** Maximum number of sentences that are announced for one `Changes` message. */
const MOST = 3;

/**
 * Makes screen readers announce new mails and changed deliveries.
 * @param {Changes} news
 */
export function announceNews({ mails, deliveries }) {
  const sentences = [
    ...mails.put.map(
      ({ code, purpose, to }) => `Mail for ${to}: the code for ${purpose} is ${[...code].join(' ')}`,
    ),
    ...deliveries.put.map(({ type, status, attempts, nextTryAt }) => {
      const last = attempts.at(-1);
      if (last === undefined || (isSuccess(last) && nextTryAt !== null)) return `${type} is pending`;
      const outcome = status === 'delivered' && !isSuccess(last) ? 'redelivery failed' : status;
      return `${type} ${outcome}, ${last.status === null ? 'no response' : `status ${last.status}`}`;
    }),
  ];
  for (const sentence of sentences.slice(-MOST)) announce(sentence);
  if (sentences.length > MOST) announce(`and ${sentences.length - MOST} more`);
}
