// @ts-check
import { attempt } from './actions.js';
import { CallError } from './api.js';

/** Maps the provider's field names to the field names of the form. */
const FIELD_NAMES = new Map([['email_address', 'email']]);

/**
 * Runs an action when a form is submitted. If the action fails, the form shows the error and focuses the invalid field.
 * @param {HTMLFormElement} form
 * @param {() => Promise<unknown>} run
 */
export function onSubmit(form, run) {
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void attempt(form, () => markInvalidField(form, run));
  });
}

/**
 * @param {HTMLFormElement} form
 * @param {() => Promise<unknown>} run
 */
async function markInvalidField(form, run) {
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
