// @ts-check
import { ActionButton, attempt } from './actions.js';
import { announce } from './announce.js';
import { call } from './api.js';
import { byId } from './dom.js';
import { onSubmit } from './forms.js';
import { html } from './preact.js';

/** @import { PendingFailure } from '../../instance/failures' */
/** @import { Model } from './live.js' */

/** Sets up the form that makes the next calls of an operation fail. */
export function failureForm() {
  const panel = byId('failure-panel', HTMLDetailsElement);
  const operation = byId('new-failure-operation', HTMLSelectElement);
  const result = byId('new-failure-result', HTMLSelectElement);
  const delay = byId('new-failure-delay', HTMLInputElement);
  const calls = byId('new-failure-calls', HTMLInputElement);
  const fill = async () => {
    const { operations } = await call('GET', '/api/operations');
    operation.replaceChildren(...operations.map((/** @type {string} */ name) => new Option(name)));
  };
  panel.addEventListener('toggle', () => {
    if (panel.open && operation.length === 0) void attempt(operation, fill);
  });
  onSubmit(byId('new-failure', HTMLFormElement), async () => {
    await call('POST', '/api/failures', {
      operation: operation.value,
      calls: calls.valueAsNumber,
      ...(/^\d/.test(result.value) && { status: Number(result.value) }),
      ...(result.value === 'disconnect' && { disconnect: true }),
      ...(delay.value !== '' && { delayMilliseconds: delay.valueAsNumber }),
    });
    announce(`Added a failure to ${operation.value}`);
  });
}

/**
 * Shows the pending failures.
 * @param {Model} model
 */
export function Failures({ failures }) {
  return failures.size > 0 && html`<ol class="stack list">${[...failures.values()].map(failureView)}</ol>`;
}

/** @param {PendingFailure} failure */
function failureView({ id, operation, calls, status, delayMilliseconds, disconnect }) {
  const effects = [
    delayMilliseconds && `after ${delayMilliseconds} ms`,
    status && `status ${status}`,
    disconnect && 'disconnects',
    calls === 1 ? 'next call' : `next ${calls} calls`,
  ];
  const remove = () => call('DELETE', `/api/failures/${id}`);
  return html`
    <li class="request row apart" key=${id}>
      <code>${operation}</code>
      <span class="row">
        <span class="status" data-state="waiting">${effects.filter(Boolean).join(' · ')}</span>
        <${ActionButton} label="Remove" about="the failure of ${operation}" run=${remove} />
      </span>
    </li>
  `;
}
