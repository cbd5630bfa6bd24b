// @ts-check
import { announce } from './announce.js';
import { html, useLayoutEffect, useRef, useState } from './preact.js';

const COPIED_MILLISECONDS = 2500;

/**
 * A button that runs an action and shows the error beside it if the action fails.
 * @param {{ label: string, about: string, run: () => Promise<unknown> }} props
 */
export function ActionButton(props) {
  return html`<span class="action row"><${Button} ...${props} /><span class="error" role="alert" /></span>`;
}

/**
 * A button that asks for confirmation before an action that cannot be undone. Escape cancels.
 * @param {{ label: string, about?: string, question: string, run: () => Promise<unknown> }} props
 */
export function DestructiveButton({ label, about, question, run }) {
  const [isAsking, ask] = useState(/** @type {boolean | undefined} */ (undefined));
  const focused = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => {
    if (isAsking !== undefined) focused.current?.focus();
  }, [isAsking]);
  const confirm = () => html`
    <span class="row" role="group" aria-label=${question}>
      ${question}
      <${Button} kind="danger" label=${label} about="${about ?? ''}, really" run=${() => run().finally(() => ask(false))} />
      <${Button} place=${focused} label="Cancel" run=${async () => ask(false)} />
    </span>
  `;
  return html`
    <span class="action row" onKeyDown=${(/** @type {KeyboardEvent} */ { key }) => key === 'Escape' && ask(false)}>
      ${
        isAsking
          ? confirm()
          : html`<${Button} kind="risky" place=${focused} label=${label} about=${about} run=${async () => ask(true)} />`
      }
      <span class="error" role="alert" />
    </span>
  `;
}

/**
 * A button that copies a text. If the browser does not allow access to the clipboard, shows the text in a field and selects it.
 * @param {{ label: string, about: string, text: () => string | Promise<string> }} props
 */
export function CopyButton({ label, about, text }) {
  const [copiedAt, setCopiedAt] = useState(0);
  const [byHand, setByHand] = useState('');
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useLayoutEffect(() => {
    if (copiedAt === 0) return undefined;
    const timer = setTimeout(() => setCopiedAt(0), COPIED_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [copiedAt]);
  useLayoutEffect(() => void field.current?.select(), [byHand]);
  const copy = async () => {
    const value = await text();
    const isCopied = await navigator.clipboard.writeText(value).then(
      () => true,
      () => false,
    );
    setByHand(isCopied ? '' : value);
    setCopiedAt(isCopied ? Date.now() : 0);
    if (isCopied) announce(`Copied ${about}`);
  };
  return html`
    <span class="action row">
      <${Button} label=${copiedAt ? 'Copied' : label} about=${about} run=${copy} />
      <span class="error" role="alert" />
      ${byHand && html`<input class="code" ref=${field} readonly value=${byHand} aria-label="${about}, to copy by hand" />`}
    </span>
  `;
}

/**
 * `about` names the object of the action for screen readers.
 * @param {{ label: string, about?: string, kind?: string, place?: object, run: () => Promise<unknown> }} props
 */
function Button({ label, about, kind = '', place, run }) {
  const press = (/** @type {{ currentTarget: HTMLElement }} */ { currentTarget }) =>
    attempt(currentTarget, run);
  return html`
    <button class="button small ${kind}" type="button" ref=${place} onClick=${press}>
      <span>${label}</span>${about && html`<span class="visually-hidden"> ${about}</span>`}
    </button>
  `;
}

/**
 * Runs an action unless it is already running, and shows its error beside the control.
 * @param {HTMLElement} control
 * @param {() => Promise<unknown>} run
 */
export async function attempt(control, run) {
  if (control.ariaBusy === 'true') return;
  const error = control.closest('.action, form')?.querySelector('.error') ?? control;
  control.ariaBusy = 'true';
  error.textContent = '';
  try {
    await run();
  } catch (reason) {
    error.textContent = reason instanceof Error ? reason.message : String(reason);
  } finally {
    control.ariaBusy = 'false';
  }
}
