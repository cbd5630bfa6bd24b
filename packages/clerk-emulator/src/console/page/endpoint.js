// @ts-check
import { attempt } from './actions.js';
import { call } from './api.js';
import { html } from './preact.js';

/** @import { Model } from './live.js' */

/**
 * Where events go, and the two ways to make that go wrong.
 * @param {Model} model
 */
export function Endpoint({ endpoint: { url, paused, signatureBroken }, deliveries }) {
  const waiting = [...deliveries.values()].filter(({ nextTryAt }) => nextTryAt !== null).length;
  const notes = [
    paused && `Paused: ${waiting === 1 ? '1 event waits' : `${waiting} events wait`}.`,
    signatureBroken && 'Every attempt carries a signature that does not fit.',
  ].filter(Boolean);
  return html`
    <p><code>${url ?? 'No endpoint is set: events wait for one.'}</code></p>
    <div class="row switches">
      <${Switch} label="Pause deliveries" isOn=${paused} change=${{ paused: !paused }} />
      <${Switch} label="Break signatures" isOn=${signatureBroken} change=${{ signatureBroken: !signatureBroken }} />
    </div>
    <p class="soft">While paused, events wait here and are sent on resume. The provider itself has no pause.</p>
    ${notes.length > 0 && html`<p class="notice">${notes.join(' ')}</p>`}
  `;
}

/**
 * A switch that shows what the stand-in says, not what was clicked.
 * @param {{ label: string, isOn: boolean, change: Record<string, boolean> }} props
 */
function Switch({ label, isOn, change }) {
  const press = (/** @type {{ currentTarget: HTMLElement }} */ { currentTarget }) =>
    attempt(currentTarget, () => call('PATCH', '/api/endpoint', change));
  return html`
    <span class="action row">
      <button class="switch" type="button" role="switch" aria-checked=${String(isOn)} onClick=${press}>
        <span class="track" aria-hidden="true" />${label}
      </button>
      <span class="error" role="alert" />
    </span>
  `;
}
