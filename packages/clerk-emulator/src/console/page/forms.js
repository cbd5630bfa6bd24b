// @ts-check
import { attempt } from './actions.js';
import { CallError } from './api.js';

/** The server names an address as the provider does. */
const FIELD_NAMES = new Map([['email_address', 'email']]);

/**
 * Has a form do something when it is submitted. An error is shown in the form's own place for it, and the field that
 * it is about is marked and focused.
 * @param {HTMLFormElement} form
 * @param {() => Promise<unknown>} run
 */
export function onSubmit(form, run) {
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void attempt(form, () => markFault(form, run));
  });
}

/**
 * @param {HTMLFormElement} form
 * @param {() => Promise<unknown>} run
 */
async function markFault(form, run) {
  for (const field of form.querySelectorAll('[aria-invalid]')) field.removeAttribute('aria-invalid');
  try {
    const [invalid] = form.querySelectorAll(':is(input, select, textarea):invalid');
    if (invalid instanceof HTMLInputElement) throw new CallError(invalid.validationMessage, invalid.name);
    await run();
  } catch (error) {
    if (error instanceof CallError && error.parameter !== undefined) {
      const field = form.elements.namedItem(FIELD_NAMES.get(error.parameter) ?? error.parameter);
      if (field instanceof HTMLElement) {
        field.setAttribute('aria-invalid', 'true');
        field.focus();
      }
    }
    throw error;
  }
}
