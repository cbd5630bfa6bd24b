// @ts-check
import { attempt } from './actions.js';
import { call } from './api.js';
import { byId, element, setText } from './dom.js';

/** @import { Model } from './live.js' */

/** Where events go, and the two ways to make that go wrong. */
export function endpointSection() {
  const url = byId('endpoint-url', HTMLParagraphElement);
  const notice = byId('endpoint-notice', HTMLParagraphElement);
  const place = byId('switches', HTMLDivElement);
  const paused = toggle(place, 'Pause deliveries', (on) => ({ paused: on }));
  const broken = toggle(place, 'Break signatures', (on) => ({ signatureBroken: on }));
  /** @param {Model} model */
  return ({ endpoint, deliveries }) => {
    setText(url, endpoint.url ?? 'No endpoint is set: events wait for one.');
    paused(endpoint.paused);
    broken(endpoint.signatureBroken);
    const waiting = [...deliveries.values()].filter(({ status }) => status === 'pending').length;
    const notes = [
      endpoint.paused ? `Paused: ${waiting === 1 ? '1 event waits' : `${waiting} events wait`}.` : '',
      endpoint.signatureBroken ? 'Every attempt carries a signature that does not fit.' : '',
    ];
    const note = notes.filter(Boolean).join(' ');
    setText(notice, note);
    notice.hidden = note === '';
  };
}

/**
 * A switch that shows what the stand-in says, not what was clicked. Returns what sets it.
 * @param {HTMLElement} place
 * @param {string} label
 * @param {(on: boolean) => Record<string, boolean>} change
 * @returns {(on: boolean) => void}
 */
function toggle(place, label, change) {
  const control = element(
    'button',
    { class: 'switch', type: 'button', role: 'switch', 'aria-checked': 'false' },
    element('span', { class: 'track', 'aria-hidden': 'true' }),
    label,
  );
  const error = element('span', { class: 'error', role: 'alert' });
  place.append(element('span', { class: 'action' }, control, error));
  control.addEventListener('click', () => {
    const on = control.ariaChecked !== 'true';
    void attempt(control, error, () => call('PATCH', '/api/endpoint', change(on)));
  });
  return (on) => {
    control.ariaChecked = String(on);
  };
}
