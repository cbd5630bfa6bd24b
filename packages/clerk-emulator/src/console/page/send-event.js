// @ts-check
import { attempt } from './actions.js';
import { announce } from './announce.js';
import { CallError, call } from './api.js';
import { byId } from './dom.js';
import { onSubmit } from './forms.js';

/** Sets up the form that sends a webhook event. The form starts with a sample, which the user can edit. */
export function eventForm() {
  const panel = byId('event-panel', HTMLDetailsElement);
  const form = byId('new-event', HTMLFormElement);
  const sample = byId('new-event-sample', HTMLSelectElement);
  const type = byId('new-event-type', HTMLInputElement);
  const data = byId('new-event-data', HTMLTextAreaElement);

  // A sample that arrives late does not replace typed text.
  let typed = false;
  for (const field of [type, data]) {
    field.addEventListener('input', () => {
      typed = true;
    });
  }

  const fill = async () => {
    let chosen = '';
    let value = {};
    do {
      chosen = sample.value;
      value = chosen === '' ? {} : await call('GET', `/api/sample-events/${chosen}`);
    } while (sample.value !== chosen);
    if (typed) return;
    type.value = chosen;
    data.value = JSON.stringify(value, null, 2);
  };
  sample.addEventListener('change', () => {
    typed = false;
    void attempt(sample, fill);
  });
  // Loads the sample when the panel is first opened, not when the page loads, so that the sample describes the newest user.
  panel.addEventListener('toggle', () => {
    if (panel.open && data.value === '') void attempt(sample, fill);
  });
  onSubmit(form, async () => {
    await call('POST', '/api/deliveries', { type: type.value, data: parsed(data.value) });
    announce(`Sent ${type.value}`);
  });
}

/**
 * @param {string} text
 * @returns {unknown}
 */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CallError(`The data is not valid JSON: ${error instanceof Error ? error.message : ''}`, 'data');
  }
}
