// @ts-check
import { attempt } from './actions.js';
import { call } from './api.js';
import { html } from './preact.js';

/** @import { Model } from './live.js' */

/**
 * Shows the address of the webhook endpoint, and two switches that make deliveries wait or give them invalid signatures.
 * @param {Model} model
 */
export function Endpoint({ endpoint: { url, paused, signatureBroken }, deliveries }) {
  const waiting = [...deliveries.values()].filter(({ nextTryAt }) => nextTryAt !== null).length;
  const notes = [
    paused && `Paused: ${waiting === 1 ? '1 event waits' : `${waiting} events wait`}.`,
    signatureBroken && 'Every attempt has an invalid signature.',
  ].filter(Boolean);
  return html`
    <p><code>${url ?? 'No endpoint is set. Events wait until there is one.'}</code></p>
    <div class="row switches">
      <${Switch} label="Pause deliveries" isOn=${paused} change=${{ paused: !paused }} />
      <${Switch} label="Break signatures" isRisky isOn=${signatureBroken} change=${{ signatureBroken: !signatureBroken }} />
    </div>
    <p class="soft">Paused events are sent when you resume. The real provider cannot be paused.</p>
    ${notes.length > 0 && html`<p class="notice" data-state=${signatureBroken ? 'bad' : 'waiting'}>${notes.join(' ')}</p>`}
  `;
}

/**
 * A switch that shows and changes a setting of the emulator.
 * @param {{ label: string, isOn: boolean, isRisky?: boolean, change: Record<string, boolean> }} props
 */
function Switch({ label, isOn, isRisky = false, change }) {
  const press = (/** @type {{ currentTarget: HTMLElement }} */ { currentTarget }) =>
    attempt(currentTarget, () => call('PATCH', '/api/endpoint', change));
  return html`
    <span class="action row">
      <button class="switch ${isRisky ? 'risky' : ''}" type="button" role="switch" aria-checked=${String(isOn)} onClick=${press}>
        <span class="track" aria-hidden="true" />${label}
      </button>
      <span class="error" role="alert" />
    </span>
  `;
}
